"""Notebooks of the learning path: Python files in jupytext's percent format, run cell by cell, outputs kept as records.

python -m docs.site.notebooks            run all and write docs/learn/outputs/
python -m docs.site.notebooks 1-words    run one
"""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOKS, OUTPUTS = ROOT / "docs/learn/notebooks", ROOT / "docs/learn/outputs"
MAX_SECONDS = 120  # what a reader should wait for one notebook
THREADS = "2"


@dataclass(frozen=True)
class Cell:
    """A cell: its name (`# %% name`), whether it is text, and its source."""

    name: str
    is_text: bool
    source: str


def cells(path: Path) -> list[Cell]:
    """Read the cells of a notebook."""
    parts = re.split(r"^# %%(.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [Cell(head.replace("[markdown]", "").strip(), "[markdown]" in head, body.strip()) for head, body in pairs]


def digest(path: Path) -> str:
    """Return a hash of the code, so that outputs of other code are noticed; its layout doesn't count."""
    code = "\n".join(ast.dump(ast.parse(cell.source)) for cell in cells(path) if not cell.is_text)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def run_cells(path: Path) -> dict[str, dict[str, str]]:
    """Run all code cells in one namespace; return what each printed and displayed, as Jupyter would."""
    space: dict[str, Any] = {"__name__": "__main__"}
    found = {}
    for cell in cells(path):
        if cell.is_text:
            continue
        tree = ast.parse(cell.source, str(path))
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        printed, value = StringIO(), None
        with redirect_stdout(printed):
            exec(compile(tree, str(path), "exec"), space)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), str(path), "eval"), space)
        output = {"text": printed.getvalue()}
        if hasattr(value, "_repr_html_"):
            output["html"] = value._repr_html_()
        elif value is not None:
            output["text"] += f"{value!r}\n"
        found[cell.name] = output
    return found


def run(path: Path) -> dict[str, Any]:
    """Run a notebook in a process of its own, offline; return the record of its outputs."""
    started = time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "MUNJANG_TUNE": "0"}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
        environment[name] = THREADS
    command = [sys.executable, "-m", "docs.site.notebooks", "--child", str(path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{path.name} failed:\n{done.stderr[-3000:]}")
    seconds = time.perf_counter() - started
    ended = json.loads(done.stdout.splitlines()[-1])
    return {
        "code": digest(path),
        "date": date.today().isoformat(),
        "machine": f"{THREADS} threads of {processor()}",
        "seconds": round(seconds),
        "cpu_seconds": round(ended["cpu_seconds"]),
        "cells": ended["cells"],
    }


def processor() -> str:
    """Return the processor's name."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if os.path.exists("/proc/cpuinfo") else ""
    match = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return match[1].strip() if match else "a CPU"


def record_of(name: str) -> dict[str, Any]:
    """Return the kept outputs of a notebook."""
    record: dict[str, Any] = json.loads((OUTPUTS / f"{name}.json").read_text(encoding="utf-8"))
    return record


def shown(name: str, cell_name: str) -> str:
    """Return a cell and its output as Markdown."""
    if record_of(name)["code"] != digest(NOTEBOOKS / f"{name}.py"):
        raise RuntimeError(f"{name} has changed since it ran: python -m docs.site.notebooks {name}")
    cell = next(cell for cell in cells(NOTEBOOKS / f"{name}.py") if cell.name == cell_name)
    output = record_of(name)["cells"][cell_name]
    parts = [f"```python\n{cell.source}\n```"]
    if output["text"].strip():
        parts.append(f'<div class="output" markdown>\n\n```text\n{output["text"].rstrip()}\n```\n\n</div>')
    if output.get("html"):
        parts.append(f'<div class="output rich">\n{output["html"]}\n</div>')
    return "\n\n".join(parts)


def convert(path: Path, target: Path) -> None:
    """Write a notebook as Jupyter's own format."""
    import jupytext

    target.parent.mkdir(parents=True, exist_ok=True)
    jupytext.write(jupytext.read(path, fmt="py:percent"), target)


def main() -> int:
    """Run notebooks and write their outputs."""
    if sys.argv[1:2] == ["--child"]:
        outputs = run_cells(Path(sys.argv[2]))
        print("\n" + json.dumps({"cells": outputs, "cpu_seconds": time.process_time()}, ensure_ascii=False))
        return 0
    for path in sorted(NOTEBOOKS.glob("*.py")):
        if sys.argv[1:] and path.stem not in sys.argv[1:]:
            continue
        record = run(path)
        text = json.dumps(record, ensure_ascii=False, indent=1)
        (OUTPUTS / f"{path.stem}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{path.stem}: {record['seconds']} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
