"""munjang info: what the model says about itself, for people and for programs."""

import json
from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.cli.info import describe
from munjang.cross_encoder import CrossEncoder


def test_json_is_the_models_own(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tiny_bert), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(BiEncoder.load(tiny_bert).info(), default=str))


def test_every_fact_is_shown(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tiny_bert)]) == 0
    shown = capsys.readouterr().out.splitlines()
    for name in BiEncoder.load(tiny_bert).info():
        assert any(line.startswith(name.replace("_", " ")) for line in shown)


def test_cross_encoder(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CrossEncoder.create(tiny_bert).save(tmp_path / "cross")
    assert main(["info", str(tmp_path / "cross")]) == 0
    shown = capsys.readouterr().out
    assert shown.split()[:2] == ["kind", "cross-encoder"]
    assert "rerank weight  1.0" in shown.splitlines()


def test_the_share_that_a_re_ranker_asks_for(
    tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    CrossEncoder.create(tiny_bert).save(tmp_path / "cross")
    config = json.loads((tmp_path / "cross/config.json").read_text(encoding="utf-8"))
    (tmp_path / "cross/config.json").write_text(json.dumps({**config, "munjang_rerank_weight": 0.5}), encoding="utf-8")
    assert main(["info", str(tmp_path / "cross"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rerank_weight"] == 0.5
    CrossEncoder.create(tiny_bert, num_labels=3).save(tmp_path / "classes")
    assert main(["info", str(tmp_path / "classes"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rerank_weight"] is None  # it ranks nothing


def test_describe() -> None:
    info = {
        "kind": "bi",
        "num_layers": 1200,
        "is_lowered": True,
        "similarity": None,
        "modules": ["Transformer", "Pooling"],
        "prompts": {"query": "query: "},
        "none": {},
    }
    assert describe(info) == [
        "kind        bi",
        "num layers  1,200",
        "is lowered  yes",
        "similarity  -",
        "modules     Transformer, Pooling",
        "prompts",
        "  query  'query: '",
        "none        -",
    ]


def test_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("munjang: ")
    assert said.count("\n") == 1
    assert str(tmp_path) in said
