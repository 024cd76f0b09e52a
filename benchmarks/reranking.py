"""100 passages of about 100 tokens for one question: the bundled re-ranker beside sentence-transformers, in turns.

    python -m benchmarks.reranking --passages texts.txt [--rounds 7] [--threads 2] [--out FILE.json]

sentence-transformers gets the same model as `munjang export` writes it, and the shape of all-MiniLM-L6-v2 (6 layers of
384, the model's own vocabulary) with a fresh head. `ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2` in front of it
says what a processor without AVX-512 would take.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks.models import add_model, fill_model
from munjang import CrossEncoder
from munjang.data.tables import read_texts
from munjang.runtime.measure import processor

QUESTION = "대한민국의 수도는 어디이며 언제 정해졌는가?"
COUNT, TOKENS = 100, 100


def passages_of(path: Path, scorer: CrossEncoder) -> list[str]:
    """Lines put together until each has about the tokens wanted."""
    lines = iter(read_texts(path))
    found: list[str] = []
    while len(found) < COUNT:
        text = next(lines)
        while int(scorer.tokenizer([text]).lengths[0]) < TOKENS:
            text += " " + next(lines)
        found.append(text)
    return found


def sides(passages: list[str], minilm: Path, scratch: Path, threads: int) -> dict[str, Callable[[], Any]]:
    """What is compared: each scores all passages."""
    from sentence_transformers import CrossEncoder as Theirs

    CrossEncoder.load("ko-en-reranker", "cpu", "float32").save(scratch / "same")
    CrossEncoder.create(minilm, num_labels=1, device="cpu", dtype="float32").save(scratch / "minilm")
    ours = {name: CrossEncoder.load("ko-en-reranker", "cpu", name, threads=threads) for name in ("int8", "float32")}
    theirs = {name: Theirs(str(scratch / name), device="cpu") for name in ("same", "minilm")}
    return {
        **{f"munjang {name}": _ours(model, passages) for name, model in ours.items()},
        "sentence-transformers, the same model": _theirs(theirs["same"], passages),
        "sentence-transformers, all-MiniLM-L6-v2": _theirs(theirs["minilm"], passages),
    }


def _ours(model: CrossEncoder, passages: list[str]) -> Callable[[], Any]:
    return lambda: model.rank(QUESTION, passages)


def _theirs(model: Any, passages: list[str]) -> Callable[[], Any]:
    return lambda: model.rank(QUESTION, passages)


def measure(compared: dict[str, Callable[[], Any]], rounds: int) -> dict[str, dict[str, float]]:
    """Seconds by the clock and of the processor, and how many times as fast as the incumbent with the same model."""
    clock: dict[str, list[float]] = {name: [] for name in compared}
    busy: dict[str, list[float]] = {name: [] for name in compared}
    for number in range(rounds + 1):
        for name, call in compared.items():
            started, used = time.perf_counter(), time.process_time()
            call()
            if number:  # the first one warms up
                clock[name].append(time.perf_counter() - started)
                busy[name].append(time.process_time() - used)
    rows = {
        name: {
            "median_s": round(statistics.median(clock[name]), 4),
            "best_s": round(min(clock[name]), 4),
            "processor_s": round(statistics.median(busy[name]), 4),
        }
        for name in compared
    }
    for reference in [name for name in compared if name.startswith("sentence")]:
        for row in rows.values():
            row[f"times {reference}"] = round(rows[reference]["median_s"] / row["median_s"], 2)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=Path, required=True, help="texts, one a line")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path)
    add_model(parser)
    options = parser.parse_args()
    fill_model(options)
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as scratch:
        scorer = CrossEncoder.load("ko-en-reranker", "cpu")
        passages = passages_of(options.passages, scorer)
        rows = measure(sides(passages, Path(options.model), Path(scratch), options.threads), options.rounds)
    tokens = scorer.tokenizer(passages).lengths.mean()
    for name, row in rows.items():
        print(f"{name:42} {row}", flush=True)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "isa": os.environ.get("ONEDNN_MAX_CPU_ISA", "all"),
        "command": f"python -m benchmarks.reranking --rounds {options.rounds} --threads {options.threads}",
        "passages": COUNT,
        "tokens": round(float(tokens), 1),
        "rows": rows,
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
