import math
import sys
from pathlib import Path

import pytest

from munjang.errors import MissingExtra
from munjang.training.tensorboard import events

LOSSES = {10: 0.75, 20: 0.5, 30: 0.25}


def line(step: int, loss: float) -> dict[str, object]:
    return {"step": step, "epoch": 0, "loss": loss, "learning_rate": 2e-5, "examples_per_s": 120.5}


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself reads."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0})
    found.Reload()
    return {tag: [(each.step, each.value) for each in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_every_number_of_the_log_is_a_scalar(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    write = events(tmp_path)
    for step, loss in LOSSES.items():
        write(line(step, loss))
    metrics = {"spearman": 0.8125, "pearson": math.nan, "rows": 12, "best": "cosine"}
    on = {"sts \ud800/dev": {"kind": "sts", "main": "spearman", "metrics": metrics}}
    write({"step": 30, "evaluation": {"main": 0.8125, "name": "sts", "on": on}})
    found = scalars(tmp_path)
    assert found["train/loss"] == list(LOSSES.items())
    assert found["train/examples_per_s"] == [(step, 120.5) for step in LOSSES]
    assert found["train/learning_rate"][0][1] == pytest.approx(2e-5, rel=1e-6)
    assert found["evaluation/main"] == found["evaluation/sts ?/dev/spearman"] == [(30, 0.8125)]
    assert math.isnan(found["evaluation/sts ?/dev/pearson"][0][1])
    assert found["evaluation/sts ?/dev/rows"] == [(30, 12)]
    assert "evaluation/sts ?/dev/best" not in found
    assert "train/step" not in found


def test_a_run_that_goes_on_replaces_the_steps_it_repeats(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    first = events(tmp_path)
    for step, loss in LOSSES.items():
        first(line(step, loss))
    again = events(tmp_path)
    again(line(20, 0.375))
    assert scalars(tmp_path)["train/loss"] == [(10, 0.75), (20, 0.375)]


def test_nothing_is_written_before_the_first_line(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    events(tmp_path / "events")
    assert not (tmp_path / "events").exists()


def test_without_tensorboard_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    for name in [name for name in sys.modules if name.startswith("torch.utils.tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(MissingExtra, match=r"needs tensorboard: pip install 'munjang\[tensorboard\]'"):
        events(tmp_path)
