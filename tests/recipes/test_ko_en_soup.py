"""Trainings side by side: what runs, what is not run twice, and what a failure says."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from munjang import BiEncoder
from munjang.errors import InputError
from recipes.ko_en_small import soup
from recipes.ko_en_small.soup import mix, side_by_side, ways
from recipes.ko_en_small.words import base
from tests.recipes import small_data


@pytest.fixture
def work(make: Callable[..., Path], tmp_path: Path) -> Path:
    for name, seed in (("start", 1), ("E1", 2), ("E2", 3)):
        BiEncoder.load(make("bert", seed=seed), "cpu", "float32").save(tmp_path / name)
    return tmp_path


def test_a_mix_as_it_is_written(work: Path) -> None:
    assert ways(work, "E1=0.5;base=0,0,0.1,-0.1") == [(work / "E1", [0.5]), (work / "base", [0, 0, 0.1, -0.1])]
    assert ways(work, "") == []
    for text in ("E1", "E1=", "E1=half", "E1=1,,1"):
        with pytest.raises(InputError, match="is no number"):
            ways(work, text)


def test_a_mix_is_a_model(work: Path) -> None:
    mix(work, "E1=0.25;E2=0.5", work / "out")
    start, one, two, found = (load_file(work / name / "model.safetensors") for name in ("start", "E1", "E2", "out"))
    for name, tensor in found.items():
        expected = start[name] + 0.25 * (one[name] - start[name]) + 0.5 * (two[name] - start[name])
        assert torch.allclose(tensor, expected, atol=1e-6)
    assert BiEncoder.load(work / "out", "cpu").encode(["a cat sleeps"]).shape[0] == 1


@pytest.mark.slow  # four processes that train
def test_stages_run_and_are_not_run_again(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Real stages in processes of their own: parts of a model, and a blend, first with one that is not there."""
    parts, blend = work / "parts", work / "blend"
    jobs: soup.Jobs = {
        parts: ["pack", work / "E1", parts, "--parts", "2"],
        blend: ["blend", work / "start", work / "nowhere", blend],
    }
    with pytest.raises(InputError, match="1 of 2 stages failed"):
        side_by_side(work, jobs)
    told = capsys.readouterr().out
    assert "nowhere holds no model.safetensors" in told
    assert "blend was not made" in told
    assert (parts / "part1/weights.safetensors").exists()  # the other one was not stopped
    side_by_side(work, {**jobs, blend: ["blend", work / "start", work / "E1", blend]})
    told = capsys.readouterr().out
    assert "parts is there" in told
    assert "parts is made" not in told
    assert "blend is made" in told
    assert (blend / "model.safetensors").exists()


def test_what_is_staged(make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second time too; a start that has moved from the base, and what is kept in between."""
    pytest.importorskip("kiwipiepy")
    data, e5, work = small_data.write(tmp_path / "data"), make("xlm-roberta"), tmp_path / "work"
    base(e5, data, tmp_path / "trained")
    trained = BiEncoder.load(tmp_path / "trained", "cpu", "float32")
    with torch.no_grad():
        for parameter in trained.network.parameters():
            parameter.add_(0.1)
    trained.save(tmp_path / "trained")
    monkeypatch.setattr(soup, "START", str(tmp_path / "trained"))
    for _ in range(2):
        soup.stage(work, e5, make("mpnet"), make("albert", kind="plain"), data)
    given = {"start", "kept", "base", "mpnet", "korean", "reranker", "data", "silver"}
    assert {path.name for path in work.iterdir()} == given
    assert all(path.resolve().is_dir() for path in work.iterdir())
    start, kept, first = (load_file(work / name / "model.safetensors") for name in ("start", "kept", "base"))
    for name, tensor in kept.items():
        assert torch.allclose(tensor, first[name].lerp(start[name], soup.KEPT), atol=1e-6)
    for name in ("asked", "gathered"):
        assert len((work / f"silver/{name}.tsv").read_text().splitlines()) > 10


def test_every_training_gets_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainings take an H200; here each stage only checks its inputs and leaves an empty folder."""
    for name in ("start", "kept", "base", "mpnet", "korean", "reranker", "data", "silver"):
        (tmp_path / name).mkdir()
    made: list[str] = []

    def stages(work: Path, jobs: soup.Jobs) -> None:
        for out, arguments in jobs.items():
            missing = [each for each in arguments if isinstance(each, Path) and not each.exists()]
            assert missing == [out]
        for out in jobs:
            out.mkdir()
            made.append(out.name)

    differences: list[str] = []
    monkeypatch.setattr(soup, "side_by_side", stages)
    monkeypatch.setattr(soup, "difference", lambda start, model, out: differences.append(model.name))
    soup.train(tmp_path, steps=5, judges=2)
    assert made == ["tutor", "judge1", "judge2", "silver-ko.tsv", *soup.RUNS]
    assert differences == list(soup.RUNS)
    soup.search(tmp_path, steps=5)
    assert made[-len(soup.SEARCHES) :] == differences[-len(soup.SEARCHES) :] == list(soup.SEARCHES)


def test_what_is_not_staged_is_named(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    with pytest.raises(InputError, match=r"without kept, mpnet, korean, reranker, data, silver; `stage` puts them"):
        soup.train(tmp_path, steps=5, judges=2)
    with pytest.raises(InputError, match=r"without kept, reranker, silver, data; `stage` puts them"):
        soup.search(tmp_path, steps=5)
