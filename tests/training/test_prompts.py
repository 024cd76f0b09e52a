"""Prompts of training: a trained model, and its folder, put before texts what stood there when it learned."""

import json
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.training.prompts import Prompts, learned
from munjang.training.tasks import Dataset
from munjang.training.train import train
from tests.training.runs import TEXTS, close, pairs, quiet, write_sts

OWN = Prompts({"passage": "old: ", "clustering": "c: "}, "clustering")
DIFFERENT = "columns or datasets have different prompts, so the model keeps its own; set its prompts yourself"


@pytest.mark.parametrize(
    ("columns", "prompts", "default"),
    [
        ([("query: ", "passage: ")], {"query": "query: ", "document": "passage: "}, "clustering"),
        ([("query: ", "")], {"query": "query: ", "document": ""}, "clustering"),  # and not "old: " of before
        ([("q: ", "p: ", "p: "), ("", "")], {"query": "q: ", "document": "p: "}, "clustering"),
        ([("q: ", "q: "), ("q: ",)], {"query": "q: ", "document": "q: "}, "query"),  # before every text
        ([("q: ", "q: "), ("",)], {"query": "q: ", "document": "q: "}, "clustering"),
    ],
)
def test_what_is_learned(columns: list[tuple[str, ...]], prompts: dict[str, str], default: str) -> None:
    found, told = learned(OWN, columns)
    assert (dict(found.prompts), found.default_name, told) == ({"clustering": "c: ", **prompts}, default, None)


@pytest.mark.parametrize("columns", [[("q: ", "p: "), ("s: ", "s: ")], [("q: ", "p: ", "n: ")], [("q: ", "p: ", "")]])
def test_different_prompts_are_left_to_the_user(columns: list[tuple[str, ...]]) -> None:
    assert learned(OWN, columns) == (OWN, DIFFERENT)


def test_a_prompt_that_is_not_trained_with_is_told() -> None:
    own = Prompts({"query": "q: ", "document": ""})
    told = "the model has prompts (query 'q: ') and is trained without; give prompts to train with them"
    assert learned(own, [("", "")]) == (own, told)
    assert learned(Prompts({"query": "", "document": ""}), [("", "")])[1] is None
    lost = Prompts({"passage": "p: "}, "passage")  # a default that is replaced is none any more
    assert learned(lost, [("q: ", "p: ")])[0].default_name is None


def test_a_cross_encoder_has_a_prompt_of_queries() -> None:
    assert learned(Prompts({}), [("q: ", "")], is_cross=True) == (Prompts({"query": "q: "}, "query"), None)
    lost = learned(Prompts({"document": "d: "}, "document"), [("q: ", ""), ("", "")], is_cross=True)[0]
    assert lost == Prompts({"query": "q: "}, None)  # no default that is not there
    found, told = learned(Prompts({}), [("q: ", "p: "), ("", "")], is_cross=True)
    assert found == Prompts({"query": "q: "})
    assert told == "a cross-encoder keeps the prompt of the first column only; write the others into the data"


def test_the_folder_has_what_was_trained_with(tiny_bert: Path, tmp_path: Path) -> None:
    """In memory, on disk, and in sentence-transformers."""
    output, rows = tmp_path / "model", pairs(6)
    data = Dataset(data=rows, objective="in_batch", prompts=("query: ", "passage: "))
    model = train(BiEncoder.load(tiny_bert, "cpu"), data, config=quiet(max_steps=1, output=str(output)))
    wanted = model.encode(TEXTS, prompt="passage: ")
    assert isinstance(model, BiEncoder)
    theirs = SentenceTransformer(str(output), device="cpu")
    for found in (model, BiEncoder.load(output, "cpu"), theirs):
        assert found.prompts == {"query": "query: ", "document": "passage: "}
        assert found.default_prompt_name is None
        assert close(found.encode_document(TEXTS), wanted)
        assert close(found.encode_query(TEXTS), model.encode(TEXTS, prompt="query: "))
    card = (output / "README.md").read_text(encoding="utf-8")
    assert '- prompts: "query: ", "passage: "' in card
    assert "encode_query" in card


def test_a_prompt_before_every_text_is_the_default(tiny_bert: Path, tmp_path: Path) -> None:
    """While training, too: evaluation reads texts as the trained model will."""
    dev, output = str(write_sts(tmp_path / "dev.tsv")), tmp_path / "model"
    data = Dataset(data=pairs(6), objective="in_batch", prompts=("fox: ", "fox: "))
    train(tiny_bert, data, config=quiet(max_steps=1, learning_rate=1e-3, evaluate=(dev,), output=str(output)))
    model = BiEncoder.load(output, "cpu")
    assert model.default_prompt_name == "query"
    assert close(model.encode(TEXTS), model.encode([f"fox: {text}" for text in TEXTS], prompt=""))
    log = [json.loads(line) for line in (tmp_path / "model.training" / "log.jsonl").read_text().splitlines()]
    from munjang.evaluation import evaluate

    assert log[-1]["evaluation"]["main"] == pytest.approx(evaluate(model, dev).score, abs=1e-6)


def test_a_cross_encoder_of_queries(tiny_bert: Path, tmp_path: Path) -> None:
    model = CrossEncoder.create(tiny_bert, 1, "cpu", "float32")
    rows = Dataset(data=pairs(6), objective="cross_in_batch", prompts=("fox: ", ""))
    train(model, rows, config=quiet(max_steps=1, output=str(tmp_path / "model")))
    found = CrossEncoder.load(tmp_path / "model", "cpu")
    assert (found.prompts, found.default_prompt_name) == ({"query": "fox: "}, "query")
    assert close(found.predict([("a", "b")]), model.predict([("fox: a", "b")], prompt=""))


def test_what_is_told_while_training(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, rows = BiEncoder.load(tiny_bert, "cpu"), pairs(6)
    model.prompts = {"query": "q: "}
    train(model, rows, "in_batch", quiet(max_steps=1, quiet=False))
    assert f"{rows.name}: the model has prompts (query 'q: ') and is trained without" in capsys.readouterr().err
    train(model, rows, "in_batch", quiet(max_steps=1))
    assert capsys.readouterr().err == ""
