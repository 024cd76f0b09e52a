"""The model that learns is a copy: what it gives back, what a snapshot of it is, and what can't be trained."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError, UnsupportedModel
from munjang.training.trainee import Trainee
from tests.training.runs import close, quiet

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
    with pytest.raises(UnsupportedModel, match=r"computed by transformers as a whole .*CrossEncoder\.create"):
        trainee_of(CrossEncoder.load(make("nomic-like", kind="cross", num_labels=1), "cpu"))
    bi = BiEncoder.load(make("bert"), "cpu", "bfloat16")
    bi._options = None
    with pytest.raises(InputError, match="load it with dtype='float32'"):
        trainee_of(bi)
