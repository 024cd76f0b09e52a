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
import subprocess
import sys
import tarfile
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from benchmarks.incumbent import stand_ins
from benchmarks.incumbent.differences import reason_of

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
LAST_WITH_TESTS = "5.3.0"  # later source distributions have no tests
# They need models of many architectures, or trained ones, from the Hub
LEFT_OUT = ("base/modules/transformer", "test_pretrained", "test_opensearch_models", "test_search_engines")
UTILS = '"""What the source distribution leaves out."""\n\n\ndef is_ci():\n    return False\n'


def main(arguments: list[str] | None = None) -> int:
    """Run both sides, print the comparison, and return 1 if it is worse than recorded."""
    parser = argparse.ArgumentParser(prog="benchmarks.incumbent", description=__doc__.partition("\n")[0])
    parser.add_argument("--checkout", type=Path, help="a checkout of sentence-transformers; none: PyPI")
    parser.add_argument("--work", type=Path, default=ROOT / ".compat", help="where models and outcomes are kept")
    parser.add_argument("--only", nargs="*", default=[], help="paths below tests/; the floor is then not checked")
    parser.add_argument("--side", choices=("ours", "theirs", "both"), default="both")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--record", action="store_true", help="write the result, the floor of later checks")
    parser.add_argument("--show", type=int, default=40, help="how many tests that differ to list")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    checkout = options.checkout or _from_pypi(options.work)
    if not (checkout / "tests").is_dir():
        parser.error(f"{checkout} has no folder tests")
    name = f"sdist-{LAST_WITH_TESTS}" if options.checkout is None else "checkout"
    stand_ins.write_all(options.work / "hub")
    sides = {}
    for side in ("theirs", "ours"):
        path = options.work / f"{name}-{side}.jsonl"
        if options.side in (side, "both"):
            _run(side, checkout.resolve(), path.resolve(), options)
        sides[side] = _read(path)
    result = compare(sides["theirs"], sides["ours"])
    result |= {"source": name, "sentence_transformers": version("sentence-transformers")}
    _print(result, options.show)
    floor = RESULTS / f"compat-{name}.json"
    if options.record:
        floor.write_text(json.dumps({**result, "reasons": sorted(set(result["reasons"].values()))}, indent=1) + "\n")
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


def _run(side: str, checkout: Path, outcomes: Path, options: argparse.Namespace) -> None:
    """Run the tests with one library, in processes of their own."""
    outcomes.unlink(missing_ok=True)
    outcomes.touch()
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
    tests = [f"tests/{path}" for path in options.only] or ["tests"]
    ignored = [f"--ignore-glob=*{part}*" for part in LEFT_OUT]
    parallel = ["-n", str(options.processes)] if options.processes > 1 else []
    command = [sys.executable, "-m", "pytest", *tests, *ignored, *parallel, "-q", "--no-header", "--tb=no"]
    command += ["-p", "benchmarks.incumbent.plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["--rootdir", str(checkout), "-pno:langsmith_plugin", "-W", "ignore"]
    print(f"Running the tests with {'munjang.compat' if side == 'ours' else 'sentence-transformers'}", flush=True)
    with (outcomes.parent / f"{side}.log").open("w") as log:
        subprocess.run(command, cwd=checkout, env={**os.environ, **settings}, stdout=log, stderr=log)


def _read(path: Path) -> dict[str, dict[str, str]]:
    if not path.is_file():
        return {}
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {row["test"]: row for row in rows}


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
    return {
        "can_run": len(counted),
        **{outcome: totals[outcome] for outcome in ("passed", "missing", "differing")},
        "unexplained": {test: why for test, why in differing.items() if test not in reasons},
        "reasons": reasons,
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
