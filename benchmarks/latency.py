"""One short text a call on this CPU: ours beside sentence-transformers, text by text in turns.

    python -m benchmarks.latency [--rounds 15] [--threads 1 2] [--only munjang] [--model FOLDER] [--out FILE.json]

Every encoder has a process of its own and takes one turn of a few calls a text and round; the others are stopped
meanwhile. Beside the clock stands the processor time of all threads, which a busy machine disturbs less.
"""

import argparse
import json
import statistics
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.cpu import Field, num_tokens, say
from benchmarks.models import add_model, fill_model
from benchmarks.peers.table import REFERENCE
from munjang.engine.measure import processor

TEXTS = (
    "How fast is one short sentence?",
    "The train to the coast leaves at nine.",
    "She reads a book about old maps.",
    "오늘 회의는 몇 시에 시작하나요?",
    "기차는 아홉 시에 떠납니다.",
)
CALLS = 10  # of a turn, after three that are not counted


def measure(field: Field, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of a call by the clock and of the processor, and both as parts of the reference's."""
    clock: dict[str, list[list[float]]] = {name: [[] for _ in TEXTS] for name in field.running}
    busy: dict[str, list[list[float]]] = {name: [[] for _ in TEXTS] for name in field.running}
    for number in range(rounds):
        for place, text in enumerate(TEXTS):
            for name, answer in field.each(number + place, "latency", text=text, rounds=CALLS).items():
                clock[name][place] += answer["seconds"]
                busy[name][place].append(answer["processor_s"] / CALLS)
    rows = {
        name: {
            "median_ms": _over_texts(statistics.median, clock[name]),
            "best_ms": _over_texts(min, clock[name]),
            "processor_ms": _over_texts(statistics.median, busy[name]),
        }
        for name in field.running
    }
    for row in rows.values():
        row |= {f"{key[:-3]}_ratio": round(row[key] / rows[REFERENCE][key], 3) for key in list(row)}
    return rows


def _over_texts(summary: Any, seconds: list[list[float]]) -> float:
    return round(1000 * statistics.mean(map(summary, seconds)), 3)


def run(options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """All numbers of threads, as one record."""
    by_threads, versions = {}, {}
    for threads in options.threads:
        field = Field(options.model, threads, options.only, scratch)
        try:
            by_threads[str(threads)] = measure(field, options.rounds)
        finally:
            field.close()
        versions = field.versions
        for name, row in by_threads[str(threads)].items():
            say(
                f"{threads} threads, {name:24} {row['median_ms']:6.2f} ms ({row['median_ratio']:.2f}), "
                f"best {row['best_ms']:.2f} ({row['best_ratio']:.2f}), "
                f"processor {row['processor_ms']:.2f} ({row['processor_ratio']:.2f})"
            )
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "command": f"python -m benchmarks.latency --rounds {options.rounds}",
        "model": options.name,
        "calls": options.rounds * len(TEXTS) * CALLS,
        "tokens": num_tokens(options.model, {text: [text] for text in TEXTS}),
        "reference": REFERENCE,
        "versions": versions,
        "by_threads": by_threads,
    }


def main() -> None:
    """Parse, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model(parser)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="*", default=["munjang"], help="encoders whose names contain one of these")
    parser.add_argument("--out", type=Path, help="where to write the record as JSON")
    options = parser.parse_args()
    fill_model(options)
    with tempfile.TemporaryDirectory() as scratch:
        record = run(options, Path(scratch))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
