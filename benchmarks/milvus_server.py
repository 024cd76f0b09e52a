"""The contract of all stores on a real Milvus server, which needs a venv of its own.

make .venv-peers/milvus/done && python -m benchmarks.milvus_server --record
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-peers/milvus/bin/python"
TESTS = ["tests/contracts/stores", "tests/stores/milvus"]
# Runs in that venv: a server in a folder of its own, the tests against it, and what was installed.
INSIDE = """
import importlib.metadata, json, os, subprocess, sys
from milvus import MilvusServer
folder, out, *tests = sys.argv[1:]
server = MilvusServer()
server.set_base_dir(folder)
server.start()
try:
    names = ("milvus", "pymilvus", "numpy", "grpcio", "protobuf")
    versions = {name: importlib.metadata.version(name) for name in names}
    print(json.dumps(versions), flush=True)
    # Without tests/conftest.py, which makes models: this venv has no torch
    command = [sys.executable, "-W", "ignore", "-m", "pytest", "--noconftest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "tests.contracts.stores.conftest", "-k", "milvus-server", f"--junitxml={out}", *tests]
    environment = os.environ | {"MUNJANG_MILVUS": f"http://127.0.0.1:{server.listen_port}", "PYTHONPATH": "."}
    sys.exit(subprocess.run(command, env=environment, stdout=sys.stderr).returncode)
finally:
    server.stop()
"""


def outcome(report: Path) -> dict[str, Any]:
    """Tests that passed, failed and were skipped, the last two by name or reason."""
    counts: Counter[str] = Counter()
    failed, reasons = [], Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            failed.append(case.get("name"))
        elif skipped is not None:
            counts["skipped"] += 1
            reasons[skipped.get("message", "")] += 1
        else:
            counts["passed"] += 1
    return {
        **{name: counts[name] for name in ("passed", "failed", "skipped")},
        "failures": failed,
        "why": dict(reasons),
    }


def run(python: Path) -> dict[str, Any]:
    """Start the server, run the tests, stop it."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    ours = ["munjang/stores", "tests/stores", "tests/contracts/stores", "benchmarks/milvus_server.py"]
    changed = subprocess.run([*git, "status", "--short", *ours], capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="munjang-milvus-") as folder:
        report, started = Path(folder, "report.xml"), time.perf_counter()
        command = [str(python), "-W", "ignore", "-c", INSIDE, str(Path(folder, "data")), str(report), *TESTS]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        versions = next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        found = outcome(report)
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit,
        "uncommitted": changed.splitlines(),
        "versions": {"python": sys.version.split()[0], **versions},
        "seconds": round(time.perf_counter() - started),
        **found,
    }


def main() -> None:
    """Print what came out, and keep it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--python", type=Path, default=PYTHON, help="of a venv with benchmarks/peers/milvus.txt")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/DATE-milvus.json")
    arguments = parser.parse_args()
    if not arguments.python.exists():
        sys.exit(f"There is no {arguments.python}: make .venv-peers/milvus/done")
    found = run(arguments.python)
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    print(text)
    if arguments.record:
        (ROOT / f"benchmarks/results/{found['when'][:10]}-milvus.json").write_text(text, encoding="utf-8")
    sys.exit(found["failed"] > 0)


if __name__ == "__main__":
    main()
