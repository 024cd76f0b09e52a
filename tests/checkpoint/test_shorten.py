"""Fewer layers: which ones stay, and that folder and network tell the same."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder, CrossEncoder, checkpoint
from munjang.errors import InputError, UnsupportedModel
from munjang.text.packing import pack
from tests.training.runs import close

TEXTS = ["hello world", "나는 오늘 아침에 학교에 갔다", "a"]


@pytest.mark.parametrize(("count", "kept"), [(1, (2,)), (2, (0, 2)), (3, (0, 1, 2))])
def test_evenly_and_the_last_one(tiny_bert: Path, count: int, kept: tuple[int, ...]) -> None:
    model = BiEncoder.load(tiny_bert, "cpu")
    whole = {name: value.clone() for name, value in model.network.named_parameters()}
    assert checkpoint.shorten(model.model, count) == kept
    for place, layer in enumerate(kept):
        for name, value in model.network.encoder.blocks[place].named_parameters():
            assert value.equal(whole[f"encoder.blocks.{layer}.{name}"])


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta", "electra"])
def test_network_and_folder_agree(make: Callable[..., Path], tmp_path: Path, family: str) -> None:
    """What is left computes the same in memory, from its folder, and in sentence-transformers."""
    folder = make(family)
    model = BiEncoder.load(folder, "cpu")
    checkpoint.shorten(model.model, 2)
    vectors = model.encode(TEXTS)
    assert np.abs(vectors - BiEncoder.load(folder, "cpu").encode(TEXTS)).max() > 1e-3
    model.save(tmp_path / "short")
    assert close(BiEncoder.load(tmp_path / "short", "cpu").encode(TEXTS), vectors)
    theirs = SentenceTransformer(str(tmp_path / "short"), device="cpu")
    assert np.abs(theirs.encode(TEXTS) - vectors).max() < 1e-5
    assert theirs[0].auto_model.config.num_hidden_layers == 2


def test_layers_one_by_one(tiny_bert: Path) -> None:
    """The first layer's states are those of the whole model; the other one stands on them."""
    whole, short = BiEncoder.load(tiny_bert, "cpu"), BiEncoder.load(tiny_bert, "cpu")
    checkpoint.shorten(short.model, 2)
    tokens = whole.tokenizer(TEXTS)
    batch = pack(tokens.ids, tokens.lengths)
    states = [model.network.encoder.layers(batch) for model in (whole, short)]
    assert len(states[1]) == 3  # the embeddings, and two layers
    assert states[1][1].equal(states[0][1])
    assert not states[1][2].allclose(states[0][2])


def test_a_cross_encoder(make: Callable[..., Path], tmp_path: Path) -> None:
    model = CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu")
    checkpoint.shorten(model.model, 1)
    scores = model.predict([("a", "b"), ("c", "d")])
    model.save(tmp_path / "short")
    assert close(CrossEncoder.load(tmp_path / "short", "cpu").predict([("a", "b"), ("c", "d")]), scores)


def test_what_can_not_be_shortened(make: Callable[..., Path], tiny_bert: Path) -> None:
    for count in (0, 4, -1):
        with pytest.raises(InputError, match=f"between 1 and the model's 3, not {count}"):
            checkpoint.shorten(BiEncoder.load(tiny_bert, "cpu").model, count)
    for family in ("albert", "modernbert", "qwen3"):  # shared layers, layers of two kinds, not ours
        with pytest.raises(UnsupportedModel, match="BERT family"):
            checkpoint.shorten(BiEncoder.load(make(family), "cpu").model, 1)
