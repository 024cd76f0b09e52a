"""Killed at any point, a run that goes on ends with the same weights, bit for bit."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from munjang.errors import MunjangError
from tests.training.made import sentences
from tests.training.run_training import train_small

ROOT = Path(__file__).parents[2]
Run = Callable[..., None]
Killed = Callable[..., None]


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dev") / "dev.tsv"
    random = np.random.default_rng(0)
    rows = zip(sentences(20, 8), sentences(20, 9), random.random(20), strict=True)
    lines = [f"{a}\t{b}\t{score:.2f}" for a, b, score in rows]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *lines]))
    return path


@pytest.fixture(scope="module")
def run(tiny_bert: Path, dev: Path) -> Iterator[Run]:
    """Train in this process, with as many threads as the killed one has: sums in another order round otherwise."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield lambda output, resume=False: train_small(tiny_bert, output, dev, resume)
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def killed(tiny_bert: Path, dev: Path) -> Killed:
    """Train in a process of its own, which ends itself at some point."""

    def start(output: Path, **kill: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DEV": str(dev), "OMP_NUM_THREADS": "1"}
        environment |= {name: str(value) for name, value in kill.items()}
        command = [sys.executable, "-m", "tests.training.run_training", str(tiny_bert), str(output)]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == -9, done.stderr[-3000:]

    return start


@pytest.fixture(scope="module")
def whole(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("whole") / "model"
    run(output)
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
def test_killed_and_resumed(run: Run, killed: Killed, whole: Path, tmp_path: Path, kill: dict[str, int]) -> None:
    output = tmp_path / "model"
    killed(output, **kill)
    assert not output.exists()
    run(output, resume=True)
    check_equal(output, whole)


def test_other_data_is_refused(run: Run, whole: Path, tmp_path: Path) -> None:
    """A finished run's folder, whose run.json says other data."""
    output = tmp_path / "model"
    folder = tmp_path / "model.training"
    shutil.copytree(whole.with_name("model.training"), folder)
    settings = json.loads((folder / "run.json").read_text())
    next(iter(settings["data"].values()))["hash"] = "another"
    (folder / "run.json").write_text(json.dumps(settings))
    with pytest.raises(MunjangError, match="other settings"):
        run(output, resume=True)


def test_a_second_run_into_the_folder_is_refused(run: Run, whole: Path) -> None:
    with pytest.raises(MunjangError, match="holds a run already"):
        run(whole)
