"""The folder of a run: checkpoints whole or not at all, a log that forgets what was not kept, one run in a folder."""

import json
import math
import sys
from pathlib import Path

import pytest
import torch

from munjang.errors import CheckpointError, InputError, MissingExtra
from munjang.training.run import Run, events

SETTINGS = {"model": "abc", "config": {"epochs": 1.0, "seed": 3}}


def tensors(value: float) -> dict[str, torch.Tensor]:
    return {"network.weight": torch.full((3, 2), value), "step": torch.tensor(value)}


def test_the_newest_checkpoint_is_kept(tmp_path: Path) -> None:
    with Run(tmp_path / "deep" / "model") as run:
        run.begin(SETTINGS)
        assert run.newest() is None
        assert run.last_step is None
        for step in (9, 10, 1000000):
            run.save(step, tensors(step), {"epoch": 2})
            found = run.newest()
            assert found is not None
            assert torch.equal(found[0]["network.weight"], torch.full((3, 2), float(step)))
            assert found[1] == {"step": step, "epoch": 2}
            assert run.last_step == step
            assert len(list(run.folder.glob("step-*"))) == 1
    assert run.folder == tmp_path / "deep" / "model.training"


def test_a_half_written_checkpoint_is_none(tmp_path: Path) -> None:
    """What a killed process left is not taken for one, and goes when its step is saved again."""
    with Run(tmp_path / "model") as run:
        run.begin(SETTINGS)
        run.save(4, tensors(4), {})
        (run.folder / "step-000008.saving").mkdir()
        (run.folder / "step-000008.saving" / "weights.safetensors").write_bytes(b"half")
        assert run.last_step == 4
        run.save(8, tensors(8), {})
        assert sorted(path.name for path in run.folder.glob("step-*")) == ["step-000008"]
        run.save(8, tensors(9), {})  # by a run that was killed before it could tell
        found = run.newest()
    assert found is not None
    assert found[0]["step"] == 9


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    with Run(tmp_path / "model") as run:
        run.begin(SETTINGS)
        run.save(4, tensors(4), {})
        path = run.folder / "step-000004" / "weights.safetensors"
        path.write_bytes(path.read_bytes()[:-3])
        with pytest.raises(CheckpointError, match="step-000004 can't be read"):
            run.newest()


def test_the_log_is_cut_at_the_checkpoint(tmp_path: Path) -> None:
    with Run(tmp_path / "model") as run:
        run.begin(SETTINGS)
        for step in range(1, 6):
            run.log({"step": step, "name": "한국어"})
        with (run.folder / "log.jsonl").open("a") as file:
            file.write('{"step": 6, "lo')  # killed in the middle of a line
        assert [line["step"] for line in run.read_log()] == [1, 2, 3, 4, 5]
        run.cut_log(3)
        run.log({"step": 4})
        assert [line["step"] for line in run.read_log()] == [1, 2, 3, 4]
        assert run.read_log()[0]["name"] == "한국어"


def test_settings_are_compared_by_name(tmp_path: Path) -> None:
    with Run(tmp_path / "model") as run:
        with pytest.raises(InputError, match="no run to resume"):
            run.check(SETTINGS)
        run.begin(SETTINGS)
        run.check(json.loads(json.dumps(SETTINGS)))
        other = {"model": "abd", "config": {"epochs": 1.0, "seed": 4, "clip": None}, "more": 1}
        with pytest.raises(InputError) as caught:
            run.check(other)
    for told in ("model was 'abc', is now 'abd'", "config.seed was 3, is now 4", "more was None, is now 1"):
        assert told in str(caught.value)
    assert "epochs" not in str(caught.value)


def test_a_run_without_a_checkpoint_may_begin_anew(tmp_path: Path) -> None:
    """Stopped before the first checkpoint, nothing is lost by it; behind one it has to be said."""
    with Run(tmp_path / "model") as run:
        run.begin(SETTINGS)
        run.log({"step": 1})
        run.save_best({"weight": torch.ones(2)})
    with Run(tmp_path / "model") as run:
        run.begin({**SETTINGS, "model": "other"})
        assert run.read_log() == []
        assert not (run.folder / "best.safetensors").exists()
        run.save(1, tensors(1), {})
        with pytest.raises(InputError, match="holds a run already"):
            run.begin(SETTINGS)


def test_the_best_weights(tmp_path: Path) -> None:
    with Run(tmp_path / "model") as run:
        run.begin(SETTINGS)
        for value in (1.0, 2.0):
            run.save_best({"weight": torch.full((4,), value)})
            assert torch.equal(run.best()["weight"], torch.full((4,), value))
        assert [path.name for path in run.folder.glob("best*")] == ["best.safetensors"]


def test_a_refused_run_leaves_nothing(tmp_path: Path) -> None:
    with Run(tmp_path / "model") as run:
        assert (run.folder / "lock").exists()
    assert list(tmp_path.iterdir()) == []
    with Run(tmp_path / "model") as first, pytest.raises(InputError, match="another process"), Run(tmp_path / "model"):
        first.begin(SETTINGS)


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
