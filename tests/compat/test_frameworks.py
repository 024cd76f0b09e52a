"""Frameworks in the venv that `make frameworks` builds: their tests of this folder run there."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("MUNJANG_FRAMEWORKS", ROOT / ".venv-frameworks" / "bin" / "python"))
TESTS = {
    "langchain": "tests/compat/test_langchain_standard.py",
    "llama_index": "tests/compat/test_llama_index.py",
    "haystack": "tests/compat/test_haystack.py",
    "setfit": "tests/compat/test_setfit.py",
    "mteb": "tests/evaluation/test_mteb.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTS)
def test_framework(name: str) -> None:
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON}: make frameworks")
    command = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", TESTS[name]]
    quiet = {"HAYSTACK_TELEMETRY_ENABLED": "false", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=os.environ | quiet, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
    assert " skipped" not in done.stdout or name == "mteb", done.stdout[-500:]
