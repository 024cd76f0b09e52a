"""A static model beside its teacher and beside model2vec and sentence-transformers with the same folder, on one thread.

    python -m benchmarks.static STATIC TEACHER TEXTS.txt[.xz] [--count 4000] [--rounds 5] [--out FILE.json]

Every round has texts that nobody has seen before, so that what a tokenizer remembers is words, not texts. Sides take
turns; time of the process beside that of the clock, as a busy machine disturbs the clock more.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # read when the libraries are loaded
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np

from munjang import BiEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor

FEWER = 20  # times fewer texts for the teacher


def sides(static: Path, teacher: Path) -> dict[str, Callable[[list[str]], Any]]:
    """Return the function that each side encodes with."""
    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer

    ours, theirs = BiEncoder.load(static, "cpu", threads=1), StaticModel.from_pretrained(static, normalize=True)
    incumbent, encoder = SentenceTransformer(str(static), device="cpu"), BiEncoder.load(teacher, "cpu", "int8", 1)
    return {
        "munjang": lambda texts: ours.encode(texts, progress=False),
        "model2vec": lambda texts: theirs.encode(texts, use_multiprocessing=False),
        "sentence-transformers": lambda texts: incumbent.encode(texts, batch_size=1024),
        "teacher, int8": lambda texts: encoder.encode(texts[: len(texts) // FEWER], progress=False),
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("static", type=Path)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("texts", type=Path, help="one text a line")
    parser.add_argument("--count", type=int, default=4000, help="texts of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts = list(islice(read_texts(options.texts), options.count * (options.rounds + 1)))
    found: dict[str, list[tuple[float, float]]] = {}
    differences = []
    for row in range(options.rounds + 1):  # the first one warms up
        some = texts[row * options.count : (row + 1) * options.count]
        vectors = {}
        if not row:
            encoders = sides(options.static, options.teacher)
        for name, encode in encoders.items():
            cpu, clock = time.process_time(), time.perf_counter()
            vectors[name] = encode(some)
            taken = time.process_time() - cpu, time.perf_counter() - clock
            if row:
                found.setdefault(name, []).append((len(vectors[name]) / taken[0], len(vectors[name]) / taken[1]))
        differences.append(float(np.abs(vectors["munjang"] - vectors["model2vec"]).max()))
    rates = {
        name: [round(statistics.median(column)) for column in zip(*rows, strict=True)] for name, rows in found.items()
    }
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "command": f"python -m benchmarks.static {options.static.name} {options.teacher.name} {options.texts.name}",
        "texts_a_round": options.count,
        "rounds": options.rounds,
        "texts_per_cpu_s": {name: cpu for name, (cpu, _) in rates.items()},
        "texts_per_s": {name: clock for name, (_, clock) in rates.items()},
        "times_by_cpu": {name: round(rates["munjang"][0] / cpu, 1) for name, (cpu, _) in rates.items()},
        "largest_difference_to_model2vec": max(differences),
    }
    print(json.dumps(record, indent=1), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
