"""Similar pairs and communities, ours beside sentence-transformers', in turns; and whether they are the same.

    python -m benchmarks.tasks_pairs --vectors FILE.npy [--count 100000] [--rounds 1] [--only pairs] [--out FILE.json]
    python -m benchmarks.tasks_pairs --vectors FILE.npy --alone --threshold 0.9     # ours alone: millions of vectors

FILE.npy is what `munjang encode texts.txt -o FILE.npy` writes. `cpu` seconds beside the clock's say what a busy machine
took away.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang.compat import util as ours
from munjang.engine.measure import processor
from munjang.tasks.cluster.community import communities

MAX_PAIRS = 500_000  # the incumbent's default


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return the result of some work, and its seconds by the clock and on the processors."""
    clock, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, {"clock": time.perf_counter() - clock, "cpu": time.process_time() - cpu}


def side_by_side(name: str, sides: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Any]:
    """Turn by turn; ratios of the best turns."""
    best: dict[str, dict[str, float]] = {}
    found: dict[str, Any] = {}
    for _ in range(rounds):
        for side, work in sides.items():
            found[side], taken = timed(work)
            before = best.get(side, taken)
            best[side] = {unit: min(before[unit], taken[unit]) for unit in taken}
            print(f"{name}: {side} {taken['clock']:.1f} s, {taken['cpu']:.1f} s of processors", flush=True)
    times = {f"times_{unit}": best["theirs"][unit] / best["ours"][unit] for unit in ("clock", "cpu")}
    return {"task": name, "seconds": best, **times, **compare(found["ours"], found["theirs"])}


def compare(mine: list[list[Any]], other: list[list[Any]]) -> dict[str, Any]:
    """Count the results that are shared: pairs by their places, communities by their members."""
    is_pairs = bool(mine) and isinstance(mine[0][0], float)
    a, b = ({tuple(row[1:]) if is_pairs else tuple(sorted(row)) for row in side} for side in (mine, other))
    facts: dict[str, Any] = {"found": len(a), "theirs": len(b), "shared": len(a & b)}
    if is_pairs:
        facts["largest_difference_of_scores"] = max(abs(x[0] - y[0]) for x, y in zip(mine, other, strict=False))
    return facts


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threshold", type=float, default=0.75)
    parser.add_argument("--min-size", type=int, default=10)
    parser.add_argument("--only", choices=["pairs", "communities"])
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    stored = np.load(options.vectors, mmap_mode="r")[: None if options.alone else options.count]
    record: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "threads": torch.get_num_threads(),
        "command": "python -m benchmarks.tasks_pairs",
        "vectors": list(stored.shape),
        "threshold": options.threshold,
        "min_size": options.min_size,
    }
    if options.alone:
        limits = {"threshold": options.threshold, "min_size": options.min_size}
        found, seconds = timed(lambda: communities(stored, **limits, progress=True))
        record |= {"seconds": seconds, "communities": len(found), "members": sum(map(len, found))}
        record["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    else:
        from sentence_transformers import util as theirs

        vectors = torch.from_numpy(np.array(stored))
        detect = {"threshold": options.threshold, "min_community_size": options.min_size}
        tasks: dict[str, dict[str, Callable[[], Any]]] = {
            "communities": {
                "ours": lambda: ours.community_detection(vectors, **detect),
                "theirs": lambda: theirs.community_detection(vectors, **detect),
            },
            "pairs": {
                "ours": lambda: ours.paraphrase_mining_embeddings(vectors, max_pairs=MAX_PAIRS),
                "theirs": lambda: theirs.paraphrase_mining_embeddings(vectors, max_pairs=MAX_PAIRS),
            },
        }
        chosen = {name: sides for name, sides in tasks.items() if options.only in (None, name)}
        record["tasks"] = [side_by_side(name, sides, options.rounds) for name, sides in chosen.items()]
    text = json.dumps(record, indent=1)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
