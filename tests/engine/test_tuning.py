"""Tokens a batch: measured once, kept, and never in the way."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder, TrainConfig, train
from munjang.engine import run as running
from munjang.engine import tuning
from munjang.engine.tuning import find
from munjang.nn.sample import sample
from munjang.text.packing import Packed
from tests.engine.networks import submit
from tests.texts import mixed


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and nothing known yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(tuning.TUNE_VARIABLE, raising=False)
    monkeypatch.setattr(tuning, "_known", {})
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
    assert asked == [1, *[1, 2, 4] * tuning.MAX_TURNS]
    assert json.loads(elsewhere.read_text()) == {"here": 2}
    monkeypatch.setattr(tuning, "_known", {})  # another process
    assert find("here", (1, 2, 4), measure) == 2  # type: ignore[arg-type]
    assert asked == [1, *[1, 2, 4] * tuning.MAX_TURNS]
    assert find("there", (1, 4), measure) == 4  # type: ignore[arg-type]
    assert json.loads(elsewhere.read_text()) == {"here": 2, "there": 4}
    assert list(elsewhere.parent.iterdir()) == [elsewhere]


def test_a_slow_machine_has_two_turns_or_none_and_a_busy_while_is_nobodys() -> None:
    speeds = iter([5.0, 5.0, 5.0, 50.0, 99.0, 50.0, 99.0])  # something else ran at first
    assert find("busy", (1, 2), lambda candidate: next(speeds)) == 2
    assert next(speeds, None) is None
    asked: list[int] = []
    assert find("slow", (1, 2), rates({1: 1.0, 2: 0.5}, asked)) == 1  # type: ignore[arg-type]
    assert asked == [1, *[1, 2] * 2]
    asked.clear()
    assert find("slower", (1, 2), rates({1: 0.5, 2: 9.0}, asked)) == 1  # type: ignore[arg-type]
    assert asked == [1, 1]  # the rest would take more than five seconds
    compiled = iter([0.1, 50.0, 50.0, 0.1, 50.0, 99.0])  # each size is slow once
    assert find("compiled", (1, 2), lambda candidate: next(compiled)) == 2
    assert next(compiled, None) is None


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
    monkeypatch.setattr(running, "MIN_BATCHES_TO_TUNE", 1)
    model, texts = BiEncoder.load(tiny_bert, device="cpu"), mixed(400, longest=30)
    few = model.encode(texts[:5])
    assert not elsewhere.exists()
    vectors = model.encode(texts)
    ((key, budget),) = json.loads(elsewhere.read_text()).items()
    assert f"torch {torch.__version__}" in key
    assert "3x32x48, torch.float32" in key
    assert budget in running.CANDIDATE_BUDGETS["cpu"]
    assert model._engine.executor._budget == budget
    assert np.abs(vectors[:5] - few).max() < 1e-5


def test_batches_on_their_way_are_not_measured_too(tiny_bert: Path) -> None:
    """Waiting for them would make small batches look slow, as there are more of those."""
    model = BiEncoder.load(tiny_bert, device="cpu", threads=2)
    run = model._engine.executor
    batch = sample(model.network.encoder, [32] * 8)  # type: ignore[arg-type]

    def other(batch: Packed) -> torch.Tensor:
        time.sleep(0.5)
        return batch.ids_T

    run._rate(model.network.encoder, 1024)  # type: ignore[arg-type]
    alone = run._rate(model.network.encoder, 1024)  # type: ignore[arg-type]
    waiting = [submit(run, batch, other, is_one_of_many=True) for _ in range(4)]
    started = time.monotonic()
    beside = run._rate(model.network.encoder, 1024)  # type: ignore[arg-type]
    assert time.monotonic() - started > 0.4  # it did wait: 1,024 tokens in that time would be 2,560 a second
    assert beside > max(3000, alone / 20)
    for future in waiting:
        future.result()


def test_off_by_the_environment(tiny_bert: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MIN_BATCHES_TO_TUNE", 0)
    monkeypatch.setenv(tuning.TUNE_VARIABLE, "0")
    model = BiEncoder.load(tiny_bert, device="cpu")
    model.encode(mixed(400, longest=30))
    assert model._engine.executor._budget is None
    assert not elsewhere.exists()
    assert os.environ[tuning.TUNE_VARIABLE] == "0"


def test_never_in_training(tiny_bert: Path, elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MIN_BATCHES_TO_TUNE", 0)
    texts = mixed(80, longest=30)
    rows = [f"{a}\t{b}\t{place % 6}" for place, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["sentence1\tsentence2\tscore", *rows]), encoding="utf-8")
    model = BiEncoder.load(tiny_bert, device="cpu")
    config = TrainConfig(max_steps=2, evaluate=(str(tmp_path / "dev.tsv"),), avoid=(), quiet=True)
    train(model, tmp_path / "train.tsv", "regression", config, reading={"score_range": (0, 5)})
    assert not elsewhere.exists()
    model.encode(texts)
    assert elsewhere.exists()
