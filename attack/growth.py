"""Growth: a million rows added, and a model loaded and unloaded 50 times; time, memory, size of the folder."""

import argparse
import gc
import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import numpy as np

from attack.serving import memory_mb
from attack.verdict import Verdict
from benchmarks.models import fill_model
from munjang.bi_encoder import BiEncoder
from munjang.index import Index
from munjang.stores.lance import store as lance
from tests.models import make_model

NUM_ROWS, BATCH = 1_000_000, 10_000  # at scale 1
NUM_LOADS, WARM_LOADS = 50, 10
MAX_FOLDER = 3.0  # of what texts and vectors take themselves
MAX_GROWTH = 1.1  # of memory, after the first loads
MAX_MORE_MB = 1500  # of memory, for rows of any number


def run(options: argparse.Namespace) -> Verdict:
    """Add rows, then load and unload."""
    verdict = Verdict("growth")
    _rows(max(50_000, round(NUM_ROWS * options.scale)), verdict)
    _loads(options, verdict)
    return verdict


def _rows(number: int, verdict: Verdict) -> None:
    draws = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        model = BiEncoder.load(make_model("bert", Path(folder) / "model"), "cpu", threads=1)
        place, start = Path(folder) / "index", time.monotonic()
        figures, raw_bytes, before_mb = [], 0, memory_mb(os.getpid())
        with Index.open(place, model, chunk=0) as index:
            for first in range(0, number, BATCH):
                texts = [f"row {at} of {number} with some words {at % 977}" for at in range(first, first + BATCH)]
                vectors = draws.standard_normal((BATCH, model.dimension), np.float32)
                index.add(texts, [str(at) for at in range(first, first + BATCH)], vectors=vectors, progress=False)
                raw_bytes += vectors.nbytes + sum(map(len, texts))
                figures.append(memory_mb(os.getpid()) - before_mb)
            seconds = time.monotonic() - start
            index.compact()
            compact_s = time.monotonic() - start - seconds
            start = time.monotonic()
            hits = index.search(vectors[7], k=1)
            search_s = time.monotonic() - start
            verdict.expect(hits[0].document_id == str(first + 7), "the nearest row is not found")
            verdict.expect(index.count() == number, f"{index.count()} rows instead of {number}")
            with_old_versions = _size(place)  # which LanceDB keeps for an hour, for those who read them
            lance.VERSION_LIFETIME = timedelta(0)
            index.compact()
            size = _size(place)
    verdict.counts["rows"] = {
        "added": number,
        "seconds": round(seconds, 1),
        "seconds to compact": round(compact_s, 1),
        "seconds of a search": round(search_s, 3),
        "MB more at most": round(max(figures)),
        "folder in MB": round(size / 1e6, 1),
        "folder in MB with versions of the last hour": round(with_old_versions / 1e6, 1),
        "texts and vectors in MB": round(raw_bytes / 1e6, 1),
    }
    verdict.expect(max(figures) < MAX_MORE_MB, f"memory grew by {max(figures):.0f} MB")
    verdict.expect(size <= MAX_FOLDER * raw_bytes, f"the folder has {size} bytes for {raw_bytes}")


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def _loads(options: argparse.Namespace, verdict: Verdict) -> None:
    fill_model(options)
    figures = []
    for _ in range(NUM_LOADS):
        model = BiEncoder.load(options.model, "cpu", threads=1)
        model.encode(["a text"] * 8, progress=False)
        del model
        gc.collect()
        figures.append(memory_mb(os.getpid()))
    warm = figures[WARM_LOADS - 1]
    verdict.counts["loads"] = {"number": NUM_LOADS, f"MB after {WARM_LOADS}, {NUM_LOADS}": [warm, figures[-1]]}
    verdict.expect(figures[-1] <= MAX_GROWTH * warm, f"memory grew from {warm} to {figures[-1]} MB")
