"""Tokens a batch: measured once, kept, and never in the way."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder
from munjang.runtime import calibration, executor
from munjang.runtime.calibration import find
from tests.texts import mixed


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and nothing known yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(calibration.SWITCH, raising=False)
    monkeypatch.setattr(calibration, "_known", {})
    return tmp_path / "cache" / "munjang" / "budgets.json"


def rates(given: dict[int, float], asked: list[int]) -> object:
    def measure(candidate: int) -> float:
        asked.append(candidate)
        return given[candidate]

    return measure


def test_the_smallest_of_the_best_is_found_once_and_kept(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    measure = rates({1: 50.0, 2: 99.0, 4: 100.0}, asked)
    assert find("here", (1, 2, 4), measure) == 2  # type: ignore[arg-type]
    assert find("here", (1, 2, 4), measure) == 2  # type: ignore[arg-type]
    assert asked == [1, 2, 4]
    assert json.loads(elsewhere.read_text()) == {"here": 2}
    monkeypatch.setattr(calibration, "_known", {})  # another process
    assert find("here", (1, 2, 4), measure) == 2  # type: ignore[arg-type]
    assert asked == [1, 2, 4]
    assert find("there", (1, 4), measure) == 4  # type: ignore[arg-type]
    assert json.loads(elsewhere.read_text()) == {"here": 2, "there": 4}
    assert list(elsewhere.parent.iterdir()) == [elsewhere]


@pytest.mark.parametrize("content", ["", "[1]", '{"here": "2"}', '{"here": 3}', "\0"])
def test_what_is_kept_may_be_damaged(elsewhere: Path, content: str) -> None:
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text(content)
    assert find("here", (1, 2), lambda candidate: float(candidate)) == 2
    assert json.loads(elsewhere.read_text())["here"] == 2


def test_a_home_that_can_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # a folder can't be made under a file
    assert find("here", (1, 2), lambda candidate: 1 / candidate) == 1
    assert find("here", (1, 2), lambda candidate: float(candidate)) == 1  # known to this process


def test_encoding_measures_when_there_is_enough_to_do(
    tiny_bert: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "WORTH", 1)
    model, texts = BiEncoder.load(tiny_bert, device="cpu"), mixed(400, longest=30)
    few = model.encode(texts[:5])
    assert not elsewhere.exists()
    vectors = model.encode(texts)
    ((key, budget),) = json.loads(elsewhere.read_text()).items()
    assert f"torch {torch.__version__}" in key
    assert "3x32x48, float32" in key
    assert budget in executor.CANDIDATES["cpu"]
    assert model._engine.executor._budget == budget
    assert np.abs(vectors[:5] - few).max() < 1e-5


def test_off_by_the_environment(tiny_bert: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "WORTH", 0)
    monkeypatch.setenv(calibration.SWITCH, "0")
    model = BiEncoder.load(tiny_bert, device="cpu")
    model.encode(mixed(400, longest=30))
    assert model._engine.executor._budget is None
    assert not elsewhere.exists()
    assert os.environ[calibration.SWITCH] == "0"
