"""Encoders side by side: the same figures as `evaluate`, with intervals, and nothing is measured twice."""

import json
import sys
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
    assert len(capsys.readouterr().out.splitlines()) == len(sets) + 1
    found = scores.measure(models, sets, data, out, "float32")
    assert len(capsys.readouterr().out.splitlines()) == len(sets) + 1, "the first model is not measured again"
    assert json.loads(out.read_text()) == found
    (first, reports), _ = found["models"].items()
    assert first == f"{Path(models[0]).name}, float32"
    alone = evaluate(BiEncoder.load(models[0], "cpu"), file(data, "sts/korsts-test"), kind="sts")
    assert reports["korsts-test"]["spearman_cosine"] == pytest.approx(100 * alone.score, abs=0.01)
    low, high = reports["korsts-test"]["interval"]
    assert low <= 100 * alone.score <= high


def test_one_command_for_both_tables(
    make: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, out = small_data.write(tmp_path / "data"), tmp_path / "scores.json"
    encoder, scorer = tmp_path / "encoder", make("bert", kind="cross", num_labels=1)
    calibrated = BiEncoder.load(make("bert"), "cpu")
    calibrated.calibrate(["A cat sleeps.", "Prices rose again.", "It rains."])
    calibrated.save(encoder)
    arguments = [str(data), str(out), str(encoder), "--sets", "cranfield", "--reranker", str(scorer)]
    monkeypatch.setattr(sys, "argv", ["scores", *arguments])
    scores.main()
    record = json.loads(out.read_text())
    assert list(record["models"]) == [f"{encoder.name}, float32"]
    by_weight = record["sets"]["cranfield"]["ndcg@10"]
    assert by_weight["0.0"][0] == pytest.approx(record["models"][f"{encoder.name}, float32"]["cranfield"]["ndcg@10"])
    assert by_weight["0.0"][3:] == [0, 0, 0]
    assert all(by_weight[weight][3] == pytest.approx(by_weight[weight][0] - by_weight["0.0"][0], abs=0.02)
               for weight in by_weight)  # fmt: skip
    assert set(record["components"]["stsb-test"]) >= {"int8", "one bit"}
    assert set(record["models"][f"{encoder.name}, float32"]["unrelated"]) == {"Korean", "English", "across"}
    stale = record | {"weights": {"ko-en-small": "others"}, "models": record["models"] | {"ko-en-small, int8": {}}}
    out.write_text(json.dumps(stale))
    kept = scores.begin(out)
    assert kept["sets"] == {}, "what other weights reached is measured again"
    assert list(kept["models"]) == [f"{encoder.name}, float32"]


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
