"""Encoders side by side: the same figures as `evaluate`, with intervals, and nothing is measured twice."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang import BiEncoder, evaluate
from recipes.models import scores
from recipes.models.sources import file
from tests.recipes.models import small_data


def test_models_side_by_side(make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = small_data.write(tmp_path / "data"), tmp_path / "scores.json"
    models = [str(make("bert", seed=seed)) for seed in (1, 2)]
    sets = ["korsts-test", "sick-dev", "crossed-dev", "klue-nli-dev", "cranfield", "mixed-dev", "stackoverflow"]
    scores.measure(models[:1], sets, data, out, "float32")
    assert len(capsys.readouterr().out.splitlines()) == len(sets)
    found = scores.measure(models, sets, data, out, "float32")
    assert len(capsys.readouterr().out.splitlines()) == len(sets), "the first model is not measured again"
    assert json.loads(out.read_text()).keys() == found.keys()
    (first, reports), _ = found.items()
    assert first == f"{Path(models[0]).name}, float32"
    alone = evaluate(BiEncoder.load(models[0], "cpu"), file(data, "sts/korsts-test"), kind="sts")
    assert reports["korsts-test"]["metrics"] == pytest.approx(alone.metrics)
    low, high = reports["korsts-test"]["interval"]
    assert low <= alone.score <= high


def test_neutral_pairs_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "nli"
    folder.mkdir()
    rows = ["가\t나\tentailment", "가\t다\tneutral", "라\t마\tcontradiction"]
    (folder / "klue-nli-dev.tsv").write_text("\n".join(["premise\thypothesis\tlabel", *rows]), encoding="utf-8")
    assert scores.entailed(tmp_path) == [("가", "나", 1), ("라", "마", 0)]


def test_translations_hide_among_distractors(tmp_path: Path) -> None:
    found = scores.mixed(small_data.write(tmp_path / "data"), count=5)
    assert len(found.queries) == 5
    assert sum(name.startswith("en") for name in found.corpus) == 5
    assert sum(name.startswith("ko") for name in found.corpus) == 15
    for place, right in found.relevances.items():
        assert list(right) == [f"en{place}"]
        assert found.queries[place] not in found.corpus.values()
