"""Models in float16 whose numbers grow too large for it: they go over to bfloat16."""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.errors import CheckpointError, OverflowWarning
from munjang.model import LoadedModel

TEXTS = ["the fox", "a cat sleeps", "the fox"]


def grow(model: LoadedModel) -> None:
    """Let the first block's inner layer compute 65,000 and more, of which little is left behind it."""
    encoder = model.network.encoder.own
    assert encoder is not None
    block = encoder.blocks[0]
    with torch.no_grad():
        block.up.bias.fill_(65_000)  # type: ignore[union-attr,operator]
        block.up.weight.mul_(1_000)  # type: ignore[union-attr,operator]
        block.down.weight.mul_(1e-3)  # type: ignore[union-attr,operator]


@pytest.mark.parametrize("options", [{}, {"output": "torch"}, {"output": "tokens"}, {"long": "average"}])
def test_a_model_goes_over_to_bfloat16(tiny_bert: Path, options: dict[str, str]) -> None:
    model, wide = (BiEncoder.load(tiny_bert, "cpu", dtype) for dtype in ("float16", "bfloat16"))
    grow(model)
    grow(wide)
    with pytest.warns(OverflowWarning, match="goes over to bfloat16"):
        found = model.encode(TEXTS, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once, and not tried again
        again, wanted = model.encode(TEXTS, **options), wide.encode(TEXTS, **options)
    assert model.info()["dtype"] == "bfloat16"
    for one, other, exact in zip(found, again, wanted, strict=True):
        assert np.array_equal(np.asarray(one), np.asarray(other))
        assert np.asarray(one, float) == pytest.approx(np.asarray(exact, float), abs=0.15)  # rounded twice


def test_a_cross_encoder_too(tiny_bert: Path) -> None:
    scorer = CrossEncoder.create(tiny_bert, device="cpu", dtype="float16")
    grow(scorer)
    with pytest.warns(OverflowWarning):
        scores = scorer.predict([("the fox", "a cat"), ("a", "b")])
    assert np.isfinite(scores).all()


def test_weights_that_are_no_numbers_stay_an_error(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, "cpu", "float16")
    word = next(module for module in model.network.modules() if isinstance(module, torch.nn.Embedding))
    word.weight.data.fill_(float("nan"))
    with pytest.raises(CheckpointError, match="NaN or infinite"):
        model.encode(TEXTS)
    assert model._engine.wider is None


@pytest.mark.parametrize("family", ["bert", "modernbert", "mpnet", "albert"])
def test_float16_without_overflow(make: Callable[..., Path], family: str) -> None:
    exact, half = (BiEncoder.load(make(family), "cpu", dtype) for dtype in ("float32", "float16"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert half.encode(TEXTS) == pytest.approx(exact.encode(TEXTS), abs=5e-3)
    assert half.fingerprint == exact.fingerprint
