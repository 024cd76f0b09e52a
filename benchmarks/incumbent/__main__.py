"""Run the tests of sentence-transformers with itself and through munjang.compat, and compare.

make compat-check                          the test files of its last source distribution that has any, from PyPI
make compat-check CHECKOUT=folder          those of a checkout, which has many more
python -m benchmarks.incumbent --checkout folder --only util/test_similarity.py --side ours

A test counts if sentence-transformers itself passes it here, without a network: models come from stand_ins.py, data
from data.py. It then passes with ours too, or is missing (a name or an argument is not there), or differs.
`--record` writes benchmarks/results/compat-*.json; a later check fails if fewer pass than recorded, or if a test
differs without a reason in differences.py.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable
from datetime import date
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from benchmarks.incumbent import stand_ins
from benchmarks.incumbent.differences import reason_of

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
LAST_WITH_TESTS = "5.3.0"  # later source distributions have no tests
# They need models of many architectures, or trained ones, from the Hub
LEFT_OUT = ("base/modules/transformer", "test_pretrained", "test_opensearch_models", "test_search_engines")
# Each of their tests starts processes that import both libraries: minutes a file
LEFT_OUT += ("test_multi_process",)
CAUSE = re.compile(r" \(/.*|'?/tmp/\S+")  # paths, which differ from run to run
UTILS = '"""What the source distribution leaves out."""\n\n\ndef is_ci():\n    return False\n'


def main(arguments: list[str] | None = None) -> int:
    """Run both sides, print the comparison, and return 1 if it is worse than recorded."""
    parser = argparse.ArgumentParser(prog="benchmarks.incumbent", description=__doc__.partition("\n")[0])
    parser.add_argument("--checkout", type=Path, help="a checkout of sentence-transformers; none: PyPI")
    parser.add_argument("--work", type=Path, default=ROOT / ".compat", help="where models and outcomes are kept")
    parser.add_argument("--only", nargs="*", default=[], help="paths below tests/; the floor is then not checked")
    parser.add_argument("--stored", action="store_true", help="compare the outcomes of earlier runs; run nothing")
    parser.add_argument("--fresh", action="store_true", help="run the tests with sentence-transformers again too")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--limit", type=int, default=1800, help="seconds for a folder of tests")
    parser.add_argument("--record", action="store_true", help="write the result, the floor of later checks")
    parser.add_argument("--show", type=int, default=40, help="how many tests that differ to list")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    checkout = options.checkout or _from_pypi(options.work)
    if not (checkout / "tests").is_dir():
        parser.error(f"{checkout} has no folder tests")
    name = f"sdist-{LAST_WITH_TESTS}" if options.checkout is None else "checkout"
    stand_ins.write_all(options.work / "hub")
    stored = options.work / name
    paths = _files(checkout, options.only)
    sides = {}
    for side in ("theirs", "ours"):
        outcomes = {path: stored / side / f"{path.replace('/', '.')}.jsonl" for path in paths}
        is_new = (side == "ours" or options.fresh) and not options.stored
        for group in _groups(path for path in paths if is_new or not outcomes[path].is_file()):
            rows = _run(side, checkout.resolve(), group, options)
            for path in group:
                own = [row for row in rows if row["test"].partition("::")[0] == path]
                outcomes[path].parent.mkdir(parents=True, exist_ok=True)
                outcomes[path].write_text("".join(json.dumps(row) + "\n" for row in own), encoding="utf-8")
        sides[side] = {row["test"]: row for path in paths for row in _read(outcomes[path])}
    result = compare(sides["theirs"], sides["ours"])
    result |= {"source": name, "sentence_transformers": version("sentence-transformers")}
    _print(result, options.show)
    floor = RESULTS / f"compat-{name}.json"
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        when = {"date": date.today().isoformat(), "commit": commit.stdout.strip()}
        reasons = dict(Counter(result["reasons"].values()).most_common())
        floor.write_text(json.dumps({**when, **result, "reasons": reasons}, indent=1) + "\n", encoding="utf-8")
    return 0 if options.only else _check(result, floor)


def _from_pypi(work: Path) -> Path:
    """Return the folder of the source distribution, downloaded once."""
    folder = work / f"sentence_transformers-{LAST_WITH_TESTS}"
    if not folder.is_dir():
        fetch = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", str(work)]
        package = f"sentence-transformers=={LAST_WITH_TESTS}"
        subprocess.run([sys.executable, "-m", "pip", *fetch, package], check=True)
        with tarfile.open(work / f"{folder.name}.tar.gz") as archive:
            archive.extractall(work, filter="data")
        (folder / "tests" / "utils.py").write_text(UTILS)
        (folder / "tests" / "__init__.py").touch()
    return folder


def _files(checkout: Path, only: list[str]) -> list[str]:
    """Return the test files to run, relative to the checkout."""
    roots = [checkout / "tests" / path for path in only] or [checkout / "tests"]
    found = sorted({path for root in roots for path in (root.rglob("test_*.py") if root.is_dir() else [root])})
    names = [path.relative_to(checkout).as_posix() for path in found]
    return [name for name in names if not any(part in name for part in LEFT_OUT)]


def _groups(paths: Iterable[str]) -> list[list[str]]:
    """Return the files of each folder: a process for every file would spend its time on importing."""
    return [list(files) for _, files in groupby(paths, key=lambda path: path.rpartition("/")[0])]


def _run(side: str, checkout: Path, tests: list[str], options: argparse.Namespace) -> list[dict[str, str]]:
    """Run files of tests with one library, in processes of their own; return how each test ended."""
    name = tests[0].rpartition("/")[0].replace("/", ".")
    outcomes = (options.work / f"{name}-{side}.jsonl").resolve()
    outcomes.write_text("")
    settings = {
        "COMPAT_SIDE": side,
        "COMPAT_OUTCOMES": str(outcomes),
        "HF_HUB_CACHE": str((options.work / "hub").resolve()),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str((options.work / "home").resolve()),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    parallel = ["-n", str(options.processes)] if options.processes > 1 else []
    command = [sys.executable, "-m", "pytest", *tests, *parallel, "-q", "--no-header", "--tb=short"]
    command += ["-p", "benchmarks.incumbent.plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(checkout), "-pno:langsmith_plugin", "-W", "ignore"]
    with outcomes.with_suffix(".log").open("w") as log:
        environment = {**os.environ, **settings}
        try:
            subprocess.run(command, cwd=checkout, env=environment, stdout=log, stderr=log, timeout=options.limit)
        except subprocess.TimeoutExpired:
            print(f"{name} with {side} was stopped after {options.limit} s: tests without an outcome count as missing")
    rows = _read(outcomes)
    counts = Counter(row["outcome"] for row in rows)
    print(f"{side}: {name}: {', '.join(f'{count} {outcome}' for outcome, count in counts.items())}", flush=True)
    return rows


def _read(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def compare(theirs: dict[str, dict[str, str]], ours: dict[str, dict[str, str]]) -> dict[str, object]:
    """Return how many tests count, and how many of them pass, are missing and differ with ours, by file."""
    counted = sorted(test for test, row in theirs.items() if row["outcome"] == "passed")
    rows = {test: ours.get(test, {"outcome": "missing", "why": "not collected"}) for test in counted}
    # a test that skips itself with ours needs something that is not there
    of_test = {test: {"skipped": "missing"}.get(row["outcome"], row["outcome"]) for test, row in rows.items()}
    files: dict[str, Counter[str]] = {}
    for test, outcome in of_test.items():
        files.setdefault(test.partition("::")[0], Counter())[outcome] += 1
    differing = {test: rows[test]["why"] for test, outcome in of_test.items() if outcome == "differing"}
    reasons = {test: reason for test, why in differing.items() if (reason := reason_of(test, why))}
    totals = Counter(of_test.values())
    causes = Counter(
        CAUSE.sub("", rows[test]["why"])[:100] for test, outcome in of_test.items() if outcome == "missing"
    )
    return {
        "can_run": len(counted),
        **{outcome: totals[outcome] for outcome in ("passed", "missing", "differing")},
        "unexplained": {test: why for test, why in differing.items() if test not in reasons},
        "reasons": reasons,
        "causes_of_missing": dict(causes.most_common(40)),
        "files": {name: dict(count) for name, count in sorted(files.items())},
    }


def _print(result: dict[str, object], show: int) -> None:
    print(f"{'passed':>8} {'missing':>8} {'differing':>10}   file")
    for name, count in result["files"].items():
        print(f"{count.get('passed', 0):8} {count.get('missing', 0):8} {count.get('differing', 0):10}   {name}")
    print(f"{result['passed']:8} {result['missing']:8} {result['differing']:10}   of {result['can_run']} that can run")
    for test, why in list(result["unexplained"].items())[:show]:
        print(f"differs: {test}\n         {why}")


def _check(result: dict[str, object], floor: Path) -> int:
    """Return 1 if fewer tests pass than recorded, or if one differs without a reason."""
    least = json.loads(floor.read_text())["passed"] if floor.is_file() else 0
    if result["passed"] < least:
        print(f"{result['passed']} pass, but {floor.relative_to(ROOT)} records {least}.")
    if result["unexplained"]:
        print(f"{len(result['unexplained'])} differ without a reason in benchmarks/incumbent/differences.py.")
    return int(result["passed"] < least or bool(result["unexplained"]))


if __name__ == "__main__":
    sys.exit(main())
