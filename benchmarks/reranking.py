"""100 passages of about 100 tokens for one question: the bundled re-ranker beside sentence-transformers, in turns.

    python -m benchmarks.reranking --passages texts.txt [--rounds 7] [--threads 2] [--out FILE.json]

sentence-transformers gets the same model as `munjang export` writes it, and the shape of all-MiniLM-L6-v2 (6 layers of
384, the model's own vocabulary) with a fresh head. `ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2` in front of it
says what a processor without AVX-512 would take.
"""

import argparse
import hashlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.models import add_model, fill_model
from munjang import CrossEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor

QUESTION = "대한민국의 수도는 어디이며 언제 정해졌는가?"
COUNT, TOKENS = 100, 100


def passages_of(path: Path, scorer: CrossEncoder) -> list[str]:
    """Lines put together until each has about the tokens wanted."""
    lines = iter(read_texts(path))
    found: list[str] = []
    text = ""
    while len(found) < COUNT:
        line = next(lines, None)
        if line is None:
            raise SystemExit(f"{path} is enough for {len(found)} passages of {TOKENS} tokens; {COUNT} are needed.")
        text = f"{text} {line}".strip()
        if int(scorer.tokenizer([text]).lengths[0]) >= TOKENS:
            found.append(text)
            text = ""
    return found


def sides(minilm: Path, scratch: Path, threads: int) -> dict[str, Any]:
    """The sides that are compared: cross-encoders, each of which ranks all passages."""
    from sentence_transformers import CrossEncoder as Theirs

    CrossEncoder.load("ko-en-reranker", "cpu", "float32").save(scratch / "same")
    CrossEncoder.create(minilm, num_labels=1, device="cpu", dtype="float32").save(scratch / "minilm")
    ours = {name: CrossEncoder.load("ko-en-reranker", "cpu", name, threads=threads) for name in ("int8", "float32")}
    theirs = {name: Theirs(str(scratch / name), device="cpu") for name in ("same", "minilm")}
    return {
        **{f"munjang {name}": model for name, model in ours.items()},
        "sentence-transformers, the same model": theirs["same"],
        "sentence-transformers, all-MiniLM-L6-v2": theirs["minilm"],
    }


def tokens_of(model: Any, passages: Sequence[str]) -> float:
    """Return the tokens that a side reads of a pair on average, special tokens included: vocabularies differ."""
    if isinstance(model, CrossEncoder):
        _, lengths = model.tokenizer.bodies([QUESTION, *passages])
        found = lengths[1:] + lengths[0] + model.tokenizer.pair.num_special
        return float(np.minimum(found, model.max_length or found.max()).mean())
    read = model.tokenizer([QUESTION] * len(passages), list(passages), truncation=True, max_length=model.max_seq_length)
    return statistics.fmean(map(len, read["input_ids"]))


def measure(models: dict[str, Any], passages: list[str], rounds: int) -> dict[str, dict[str, float]]:
    """Seconds by the clock and of the processor, and how many times as fast as each side of the incumbent."""
    clock: dict[str, list[float]] = {name: [] for name in models}
    busy: dict[str, list[float]] = {name: [] for name in models}
    for number in range(rounds + 1):
        for name, model in models.items():
            started, used = time.perf_counter(), time.process_time()
            model.rank(QUESTION, passages)
            if number:  # the first one warms up
                clock[name].append(time.perf_counter() - started)
                busy[name].append(time.process_time() - used)
    rows = {
        name: {
            "tokens_a_pair": round(tokens_of(models[name], passages), 1),
            "median_s": round(statistics.median(clock[name]), 4),
            "best_s": round(min(clock[name]), 4),
            "processor_s": round(statistics.median(busy[name]), 4),
        }
        for name in models
    }
    for reference in [name for name in models if name.startswith("sentence")]:
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
        rows = measure(sides(Path(options.model), Path(scratch), options.threads), passages, options.rounds)
    for name, row in rows.items():
        print(f"{name:42} {row}", flush=True)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "isa": os.environ.get("ONEDNN_MAX_CPU_ISA", "all"),
        "command": f"python -m benchmarks.reranking --passages {options.passages.name} --rounds {options.rounds} "
        f"--threads {options.threads}",
        "passages": {
            "source": options.passages.name,
            "count": COUNT,
            "tokens": round(float(scorer.tokenizer(passages).lengths.mean()), 1),
            "sha256": hashlib.sha256("\n".join(passages).encode()).hexdigest(),
        },
        "rows": rows,
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
