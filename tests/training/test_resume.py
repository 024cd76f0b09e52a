"""Killed at any point, a run that goes on ends with the same weights, bit for bit."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.training.made import sentences

ROOT = Path(__file__).parents[2]
Start = Callable[..., int]


@pytest.fixture(scope="module")
def start(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Start:
    dev = tmp_path_factory.mktemp("dev") / "dev.tsv"
    random = np.random.default_rng(0)
    rows = zip(sentences(20, 8), sentences(20, 9), random.random(20), strict=True)
    lines = [f"{a}\t{b}\t{score:.2f}" for a, b, score in rows]
    dev.write_text("\n".join(["sentence1\tsentence2\tscore", *lines]))

    def run(output: Path, *flags: str, **kill: int) -> int:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": str(dev), "OMP_NUM_THREADS": "1"}
        environment |= {name: str(value) for name, value in kill.items()}
        command = [sys.executable, "-m", "tests.training.run_training", str(tiny_bert), str(output), *flags]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode in (0, -9), done.stderr[-3000:]
        return done.returncode

    return run


@pytest.fixture(scope="module")
def whole(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("whole") / "model"
    assert start(output) == 0
    return output


def losses(output: Path) -> list[object]:
    lines = (output.with_name(output.name + ".training") / "log.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    # evaluation computes with packed weights, whose last bit varies with where memory begins
    scores = [line["evaluation"]["main"] if "evaluation" in line else None for line in found]
    return [
        (line["step"], line.get("loss"), score and round(score, 4)) for line, score in zip(found, scores, strict=True)
    ]


def check_equal(output: Path, whole: Path) -> None:
    assert losses(output) == losses(whole)
    found, wanted = load_file(output / "model.safetensors"), load_file(whole / "model.safetensors")
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


POINTS = [
    {"KILL_AT": 11},
    {"KILL_IN_SAVE": 3},
    pytest.param({"KILL_AT": 3}, marks=pytest.mark.slow),
    pytest.param({"KILL_AT": 8}, marks=pytest.mark.slow),
    pytest.param({"KILL_AT": 14}, marks=pytest.mark.slow),
    pytest.param({"KILL_IN_SAVE": 1}, marks=pytest.mark.slow),
    pytest.param({"KILL_IN_SAVE": 5}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("kill", POINTS, ids=str)
def test_killed_and_resumed(start: Start, whole: Path, tmp_path: Path, kill: dict[str, int]) -> None:
    output = tmp_path / "model"
    assert start(output, **kill) == -9
    assert not output.exists()
    assert start(output, "--resume") == 0
    check_equal(output, whole)


def test_other_data_is_refused(start: Start, whole: Path, tmp_path: Path) -> None:
    """A finished run's folder, whose run.json says other data."""
    output = tmp_path / "model"
    folder = tmp_path / "model.training"
    shutil.copytree(whole.with_name("model.training"), folder)
    settings = json.loads((folder / "run.json").read_text())
    next(iter(settings["data"].values()))["hash"] = "another"
    (folder / "run.json").write_text(json.dumps(settings))
    with pytest.raises(AssertionError, match="other settings"):
        start(output, "--resume")


def test_a_second_run_into_the_folder_is_refused(start: Start, whole: Path) -> None:
    with pytest.raises(AssertionError, match="holds a run already"):
        start(whole)
