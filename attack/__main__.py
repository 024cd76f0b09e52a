"""Attack a build of Munjang on this machine, part by part.

    python -m attack                      every part
    python -m attack http overload        some of them
    python -m attack fairness --scale 0.1 --out record.json

Every part prints its counts and a verdict; the record is written after each. The exit status is 1 if one of them
failed. To add a part: a file here with a function from options to a Verdict, and a line in PARTS.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attack import (
    access,
    clock,
    connections,
    disk,
    fairness,
    filters,
    folders,
    growth,
    http,
    kills,
    overload,
    schema,
    tokenizer,
    writers,
)
from attack.verdict import Verdict
from munjang.engine.measure import processor

PARTS: dict[str, Callable[[argparse.Namespace], Verdict]] = {
    "http": http.run,
    "connections": connections.run,
    "fairness": fairness.run,
    "overload": overload.run,
    "kills": kills.run,
    "tokenizer": tokenizer.run,
    "filters": filters.run,
    "folders": folders.run,
    "access": access.run,
    "schema": schema.run,
    "writers": writers.run,
    "disk": disk.run,
    "clock": clock.run,
    "growth": growth.run,
}


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that are named, all of them if none is."""
    parser = argparse.ArgumentParser(
        prog="python -m attack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--model", type=Path, help="model folder (default: all-MiniLM-L6-v2 from its package)")
    parser.add_argument("--scale", type=float, default=1.0, help="1: an hour for all; 0.1: minutes (default: 1)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="write the record there, as JSON")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.parts if name not in PARTS]:
        parser.error(f"unknown part {unknown[0]!r}; choose from {', '.join(PARTS)}")
    record: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        **commit(),
        "command": " ".join(["python -m attack", *(sys.argv[1:] if arguments is None else arguments)]),
        "scale": options.scale,
        "parts": [],
    }
    names = options.parts or [*PARTS]
    for number, name in enumerate(names, 1):
        print(f"{datetime.now():%H:%M:%S} part {number} of {len(names)}: {name} ...", file=sys.stderr, flush=True)
        start, used = time.monotonic(), processor_s()
        done = list(record["parts"])

        def write(verdict: Verdict, start: float = start, used: float = used, done: list[Any] = done) -> None:
            """Write the record with what a part has counted so far: a long one is read, or ended, in the middle."""
            verdict.counts["seconds"] = round(time.monotonic() - start, 1)
            verdict.counts["seconds of processors"] = round(processor_s() - used, 1)
            record["parts"] = [*done, verdict.as_dict()]
            if options.out:
                options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

        options.record = write
        verdict = attempted(name, options)
        write(verdict)
        print(verdict, flush=True)
    if len(names) > 1:
        print(summary(record["parts"]))
    return 0 if all(part["held"] for part in record["parts"]) else 1


def summary(parts: list[dict[str, Any]]) -> str:
    """Return a line for each part: its verdict, how long it took, and what failed first."""
    lines = [
        f"{part['name']:<12} {'held' if part['held'] else 'FAILED':<7} {part['counts']['seconds']:>7.1f} s"
        f"  {''.join(part['failures'][:1])[:90]}".rstrip()
        for part in parts
    ]
    num_held, total = sum(part["held"] for part in parts), sum(part["counts"]["seconds"] for part in parts)
    return "\n".join([*lines, f"{num_held} of {len(parts)} parts held, in {total / 60:.1f} minutes"])


def processor_s() -> float:
    """Return the time that processors worked for us and for child processes that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def commit() -> dict[str, Any]:
    """Return what is attacked: the commit, and the files that differ from it."""
    ask = ("git", "-C", str(Path(__file__).parent))
    head = subprocess.run([*ask, "rev-parse", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*ask, "diff", "--name-only", "HEAD"], capture_output=True, text=True)
    return {"commit": head.stdout.strip() or "unknown", "uncommitted": changed.stdout.split()}


def attempted(name: str, options: argparse.Namespace) -> Verdict:
    """Run one part; one that breaks has failed, and the others still run."""
    try:
        return PARTS[name](options)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        return Verdict(name, failures=[f"the part itself broke: {type(error).__name__}: {error}"])


if __name__ == "__main__":
    sys.exit(main())
