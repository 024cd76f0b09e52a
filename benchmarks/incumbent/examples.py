"""Run the example scripts of sentence-transformers after the one changed import.

python -m benchmarks.incumbent.examples --checkout FOLDER               which scripts use only names that we have
python -m benchmarks.incumbent.examples --checkout FOLDER --run 30      and really run them, on small local data

A script's text is changed in one way: `sentence_transformers` in its import lines becomes `munjang.compat`. To run
without a network, a model that is not in the local cache becomes a tiny one, a dataset small rows of data.py, and
training takes three steps; the script itself is as published. A script that ran keeps its outcome and the commit it
was seen at in the record; the others run again.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.incumbent import stand_ins

ROOT = Path(__file__).parents[2]
THEIRS, OURS = "sentence_transformers", "munjang.compat"
IMPORT = re.compile(rf"^(\s*(?:from|import)\s+){THEIRS}\b", re.MULTILINE)
WHOLE = re.compile(rf"^(\s*import\s+){THEIRS}[^\S\n]*$", re.MULTILINE)
# What the machine lacks, not the library: a script that stops for this alone is told apart
NOT_HERE = re.compile(r"No module named '(?!munjang)|is not among the local data|ConnectionError|URLError")


def changed(source: str) -> str:
    """Return a script after the change of its imports."""
    return IMPORT.sub(rf"\1{OURS}", WHOLE.sub(rf"\1{OURS} as {THEIRS}", source))


def missing_names(source: str) -> list[str]:
    """Return the imported names of a changed script that we don't have."""
    found = []
    for node in ast.walk(ast.parse(changed(source))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
            for alias in node.names:
                if not _is_there(str(node.module), alias.name):
                    found.append(f"{node.module}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(OURS) and not _is_there(*alias.name.rpartition(".")[::2]):
                    found.append(alias.name)
    return found


def _is_there(module: str, name: str) -> bool:
    try:
        loaded = import_module(module)
        if name != "*" and not hasattr(loaded, name):
            import_module(f"{module}.{name}")
    except (ImportError, AttributeError):
        return False
    return True


def run(path: Path, work: Path, seconds: int) -> dict[str, Any]:
    """Run a changed script in a folder of its own; return how it ended."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        script = Path(folder, path.name)
        script.write_text(changed(path.read_text(encoding="utf-8")), encoding="utf-8")
        settings = {
            "HF_HUB_CACHE": str((work / "hub").resolve()),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str((work / "home").resolve()),
            "OMP_NUM_THREADS": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "WANDB_MODE": "disabled",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(path.parent.resolve()), os.environ.get("PYTHONPATH", "")]),
        }
        command = [sys.executable, "-m", "benchmarks.incumbent.small", str(script)]
        try:
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, **settings}, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return {"outcome": "too long", "why": f"more than {seconds} s"}
    if done.returncode == 0:
        return {"outcome": "ran", "commit": _commit()}
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
    why = lines[-1][:300]
    (work / "examples").mkdir(exist_ok=True)
    (work / "examples" / f"{path.name}.log").write_text(done.stdout + done.stderr)
    return {"outcome": "not here" if NOT_HERE.search(why) else "failed", "why": why}


def main(arguments: list[str] | None = None) -> int:
    """Check the scripts, run some, and write the record."""
    parser = argparse.ArgumentParser(prog="benchmarks.incumbent.examples", description=__doc__.partition("\n")[0])
    parser.add_argument("--checkout", type=Path, required=True, help="a checkout of sentence-transformers")
    parser.add_argument("--work", type=Path, default=ROOT / ".compat", help="where models and logs are kept")
    parser.add_argument("--run", type=int, default=0, help="stop after so many scripts that ran")
    parser.add_argument("--limit", type=int, default=120, help="seconds for a script")
    parser.add_argument("--only", default="", help="run scripts with this in their path")
    parser.add_argument("--out", type=Path, help="write the record here")
    options = parser.parse_args(arguments)
    root = options.checkout / "examples"
    scripts = sorted(root.rglob("*.py"))
    if not scripts:
        parser.error(f"{root} has no scripts")
    lacking = {str(path.relative_to(root)): missing_names(path.read_text(encoding="utf-8")) for path in scripts}
    whole = [path for path in scripts if not lacking[str(path.relative_to(root))]]
    print(f"{len(whole)} of {len(scripts)} scripts use only names that are there")
    stand_ins.write_all(options.work / "hub")
    outcomes = _known(options.out)
    for path in whole:
        name = str(path.relative_to(root))
        if options.only not in name or outcomes.get(name, {}).get("outcome") == "ran":
            continue
        if sum(each["outcome"] == "ran" for each in outcomes.values()) >= options.run:
            break
        outcomes[name] = run(path, options.work, options.limit)
        print(f"{outcomes[name]['outcome']:9} {name} {outcomes[name].get('why', '')[:150]}", flush=True)
        if options.out is not None:  # each time, as a run may be stopped
            _record(options.out, scripts, lacking, outcomes)
    print(f"{sum(each['outcome'] == 'ran' for each in outcomes.values())} ran")
    if options.out is not None:
        _record(options.out, scripts, lacking, outcomes)
    return 0


def _commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip()


def _known(path: Path | None) -> dict[str, dict[str, Any]]:
    """Return the outcomes of an earlier record."""
    if path is None or not path.is_file():
        return {}
    return dict(json.loads(path.read_text(encoding="utf-8"))["outcomes"])


def _record(
    path: Path, scripts: list[Path], lacking: dict[str, list[str]], outcomes: dict[str, dict[str, Any]]
) -> None:
    """Write what is known, with the outcomes that another run has written meanwhile."""
    merged = {**outcomes, **{name: row for name, row in _known(path).items() if row["outcome"] == "ran"}}
    record = {
        "date": date.today().isoformat(),
        "scripts": len(scripts),
        "names_are_there": sum(not names for names in lacking.values()),
        "ran": sum(each["outcome"] == "ran" for each in merged.values()),
        "outcomes": dict(sorted(merged.items())),
        "names_missing": {name: names for name, names in lacking.items() if names},
    }
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
