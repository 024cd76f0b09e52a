"""Real processes, started by torchrun as a user would."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.training.made import difference
from tests.training.run_gradient import OBJECTIVES, write_gradients

ROOT = Path(__file__).parents[2]


def start(number: int, *given: str) -> None:
    """torchrun with so many processes on this machine."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(number)]
    done = subprocess.run([*command, *given], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def results(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The folder of the gradients of so many processes: one is this one, more are started."""

    @cache
    def gradients(number: int) -> Path:
        folder = tmp_path_factory.mktemp(f"gradients-{number}")
        if number == 1:
            write_gradients(tiny_bert, folder)
        else:
            start(number, "-m", "tests.training.run_gradient", str(tiny_bert), str(folder))
        return folder

    return gradients


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("batch_tokens", [100_000, 60])
@pytest.mark.parametrize("number", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_any_number_of_processes_gives_the_same_gradient(
    results: Callable[[int], Path], objective: str, batch_tokens: int, number: int
) -> None:
    """fp32, no dropout, 13 examples: with and without the gradient cache, and one exchange of gradients."""
    name = f"{objective}-{batch_tokens}"
    alone, shared = (load_file(results(each) / f"{name}.safetensors") for each in (1, number))
    facts = {each: json.loads((results(each) / f"{name}.json").read_text()) for each in (1, number)}
    assert facts[number]["loss"] == pytest.approx(facts[1]["loss"], rel=1e-5)
    assert difference(shared, alone) < 1e-5
    assert facts[1]["exchanges"] == 0
    assert facts[number]["exchanges"] == 1
