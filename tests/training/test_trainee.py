"""The model that learns is a copy: what it gives back, what a snapshot of it is, and what can't be trained."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError, UnsupportedModel
from munjang.training.datasets import Dataset
from munjang.training.train import train
from munjang.training.trainee import Prompts, Trainee, learned
from tests.training.runs import close, pairs, quiet, write_sts

CPU = torch.device("cpu")
TEXTS = ["hello world", "나는 오늘 아침에 학교에 갔다"]


def trainee_of(model: Any, **settings: Any) -> Trainee:
    return Trainee(model, CPU, quiet(**settings))


def move(trainee: Trainee, by: float = 0.1) -> None:
    with torch.no_grad():
        for parameter in trainee.network.parameters():
            parameter.add_(torch.sin(torch.arange(parameter.numel())).view_as(parameter), alpha=by)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_model_changes_when_it_is_given_back(tiny_bert: Path, dtype: str) -> None:
    model = BiEncoder.load(tiny_bert, "cpu", dtype)
    trainee = trainee_of(model, max_length=20)
    before, name = model.encode(TEXTS), model.fingerprint
    move(trainee)
    assert close(model.encode(TEXTS), before)
    assert model.max_length == 100
    snapshot = trainee.snapshot()
    trainee.give_back()
    after = model.encode(TEXTS)
    assert np.abs(after - before).max() > 1e-3
    assert np.abs(after - snapshot.encode(TEXTS)).max() < (1e-6 if dtype == "float32" else 0.05)
    assert model.max_length == 100  # the limit of training is not that of the model
    assert model.fingerprint != name
    assert all(parameter.dtype == getattr(torch, dtype) for parameter in model.network.encoder.parameters())
    assert not model.network.training


def test_a_snapshot_of_other_weights(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, "cpu")
    model.prompts, model.truncate_dim = {"query": "q: "}, 8
    trainee = trainee_of(model, max_length=20)
    begin = {name: value.clone() for name, value in trainee.weights().items()}
    move(trainee)
    now = {name: value.clone() for name, value in trainee.weights().items()}
    snapshot = trainee.snapshot(begin)
    assert close(snapshot.encode(TEXTS), model.encode(TEXTS))
    assert snapshot.encode(TEXTS).shape == (2, 8)
    assert (snapshot.prompts, snapshot.max_length) == ({"query": "q: "}, 100)
    assert all(torch.equal(value, now[name]) for name, value in trainee.weights().items())
    trainee.restore(begin)
    assert all(torch.equal(value, begin[name]) for name, value in trainee.weights().items())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_share_of_a_re_ranker_is_not_that_of_the_trained_one(
    make: Callable[..., Path], tmp_path: Path, dtype: str
) -> None:
    """It was measured with other weights; what else config.json says is kept."""
    folder = shutil.copytree(make("bert", kind="cross", num_labels=1), tmp_path / "half")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "munjang_rerank_weight": 0.5}), encoding="utf-8")
    scorer = CrossEncoder.load(folder, "cpu", dtype)
    trainee = trainee_of(scorer)
    snapshot: Any = trainee.snapshot()
    assert (scorer.rerank_weight, snapshot.rerank_weight) == (0.5, 1.0)
    trainee.give_back()
    assert scorer.rerank_weight == 1.0
    trainee.save(tmp_path / "trained")
    written = json.loads((tmp_path / "trained/config.json").read_text(encoding="utf-8"))
    assert "munjang_rerank_weight" not in written
    assert config.items() <= written.items()


def test_what_objectives_are_told(make: Callable[..., Path]) -> None:
    bi = trainee_of(BiEncoder.load(make("electra", dense=20), "cpu"))
    assert bi.shapes == {"embeddings": (20,), "layers": (3, 20), "token_states": (20,)}
    facts = bi.facts
    assert (facts["width"], facts["hidden_width"], facts["word_width"]) == (20, 32, 16)
    cross = trainee_of(CrossEncoder.load(make("bert", kind="cross", num_labels=3), "cpu"))
    assert cross.shapes == {"logits": (3,)}
    assert "width" not in cross.facts


def test_dropout_is_set_everywhere(make: Callable[..., Path]) -> None:
    """Without it two passes are equal; with it they differ, and a model that is not trained has none."""
    for kind, folder in ((BiEncoder, make("bert")), (CrossEncoder, make("bert", kind="cross", num_labels=1))):
        model: Any = kind.load(folder, "cpu")
        from munjang.text.packing import pack

        tokens = model.tokenizer(TEXTS)
        batch = pack(tokens.ids, tokens.lengths)
        none, much = trainee_of(model, dropout=0.0).network, trainee_of(model, dropout=0.5).network
        assert torch.equal(none(batch), none(batch))
        assert not torch.allclose(much(batch), much(batch))
        assert torch.allclose(none(batch), model.network(batch), atol=1e-5)
        assert not [module for module in none.modules() if isinstance(module, nn.Dropout) and module.p > 0]


def test_limits_of_length(make: Callable[..., Path]) -> None:
    bi, cross = BiEncoder.load(make("bert"), "cpu"), CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu")
    with pytest.raises(InputError, match="beside 2 special tokens, not 2"):
        trainee_of(bi, max_length=2)
    with pytest.raises(InputError, match="beside 3 special tokens, not 3"):  # of a pair
        trainee_of(cross, max_length=3)
    with pytest.raises(InputError, match="at most 128"):
        trainee_of(bi, max_length=129)


def test_what_can_not_be_trained(make: Callable[..., Path]) -> None:
    with pytest.raises(UnsupportedModel, match=r"computed by another library as a whole .*CrossEncoder\.create"):
        trainee_of(CrossEncoder.load(make("nomic-like", kind="cross", num_labels=1), "cpu"))
    bi = BiEncoder.load(make("bert"), "cpu", "bfloat16")
    bi._options = None
    with pytest.raises(InputError, match="load it with dtype='float32'"):
        trainee_of(bi)


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
