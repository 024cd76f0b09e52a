"""Encoding, training and evaluation with torch, numpy, tokenizers and safetensors, and nothing else."""

import json
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.run_bare import CORE
from tests.training.made import sentences
from tests.training.runs import write_sts, write_tsv

requirements = pytest.importorskip("packaging.requirements")
ROOT = Path(__file__).parents[1]
EXTRAS = ("transformers", "scipy", "sklearn", "pandas", "pyarrow", "datasets", "peft", "tensorboard", "onnx", "mteb")


def with_their_own(names: set[str]) -> set[str]:
    """Distributions, and what they need themselves."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        for line in distribution(name).requires or []:
            needed = requirements.Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting |= {needed.name.lower()} - found
    return found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages that holds the core and no more, as links to what is installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    for name in with_their_own(CORE):
        for file in distribution(name).files or []:
            top, link = file.parts[0], folder / file.parts[0]
            if top not in ("..", "__pycache__") and not link.exists():
                link.symlink_to(Path(str(distribution(name).locate_file(top))))
    return folder


def test_the_core_is_enough(tiny_bert: Path, tmp_path: Path, site: Path) -> None:
    write_tsv(tmp_path / "pairs.tsv", "anchor positive", zip(sentences(8, 1), sentences(8, 2), strict=True))
    write_sts(tmp_path / "dev.tsv")
    environment = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-S"]  # without the packages of this interpreter
    probe = f"import importlib.util as u; print([name for name in {EXTRAS} if u.find_spec(name)])"
    seen = subprocess.run([*command, "-c", probe], env=environment, capture_output=True, text=True, timeout=60)
    assert seen.stdout == "[]\n", seen.stderr
    done = subprocess.run(
        [*command, str(ROOT / "tests" / "run_bare.py"), str(tiny_bert), str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    facts = json.loads(done.stdout)
    assert facts["asked"] == []
    assert facts["extras"] == []
    assert facts["shape"] == [2, 32]
    assert facts["moved"] > 1e-4
    assert facts["kept"]
    assert facts["kind"] == "sts"
    assert -1 <= facts["score"] <= 100
    assert {"model.safetensors", "modules.json", "README.md"} <= set(facts["files"])
