"""The tests of 8 bits once more as on a CPU without AVX-512: oneDNN and torch choose their kernels at start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WEAKER = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
ROOT = Path(__file__).parents[3]
TESTS = ["tests/nn/int8", "tests/checkpoint/test_compact.py::test_the_real_minilm_computed_in_8_bits"]


@pytest.mark.skipif("ONEDNN_MAX_CPU_ISA" in os.environ, reason="this is such a run")
def test_everything_here_holds_without_vnni() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *TESTS]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(command, cwd=ROOT, env=clean | WEAKER, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
