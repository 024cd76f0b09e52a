"""Rounding in turn: on the steps of 8 bits, and nearer to the exact outputs than rounding each weight alone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.nn.int8.weights import quantize_weights
from recipes.rounding import in_turn, products, round_in_turn

TEXTS = ["a cat sleeps on the warm roof", "고양이가 따뜻한 지붕에서 잔다", "the dog", "서울은 대한민국의 수도이다"] * 4


def inputs(count: int, width: int, seed: int) -> torch.Tensor:
    """Rows whose components have much in common, as those of a network do."""
    random = torch.Generator().manual_seed(seed)
    common = torch.randn(width // 4, width, generator=random)
    return torch.randn(count, width // 4, generator=random) @ common + 0.3 * torch.randn(count, width, generator=random)


def test_nearer_than_one_by_one() -> None:
    weight = torch.randn(24, 64, generator=torch.Generator().manual_seed(1))
    seen = inputs(512, 64, seed=2)
    made = in_turn(weight, seen.T @ seen)
    codes, scale = quantize_weights(weight)
    alone = codes.float() * scale[:, None]
    others = inputs(512, 64, seed=2)[:256]
    assert (others @ (made - weight).T).norm() < 0.4 * (others @ (alone - weight).T).norm()


def test_it_lies_on_the_steps() -> None:
    """Rounded as ever, it comes out as it is; so does what lies on the steps already, and a row of zeros."""
    weight = torch.randn(24, 64, generator=torch.Generator().manual_seed(1))
    weight[3] = 0
    product = inputs(512, 64, seed=2).T @ inputs(512, 64, seed=2)
    made = in_turn(weight, product)
    codes, scale = quantize_weights(made)
    assert torch.allclose(codes.float() * scale[:, None], made, atol=1e-7)
    assert torch.equal(scale, quantize_weights(weight)[1])
    assert torch.allclose(in_turn(made, product), made, atol=1e-7)
    assert not made[3].any()


def test_inputs_that_never_vary() -> None:
    """A column that is always zero, and all columns alike."""
    weight = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
    for product in (torch.zeros(8, 8), torch.ones(8, 8), torch.diag(torch.tensor([1.0] * 7 + [0.0]))):
        assert torch.isfinite(in_turn(weight, product)).all()


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "albert"])
def test_a_model_that_is_saved_in_8_bits(make: Callable[..., Path], tmp_path: Path, family: str) -> None:
    model = BiEncoder.load(make(family), "cpu", "float32")
    exact = model.encode(TEXTS)
    model.save(tmp_path / "alone", format="munjang-int8")
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    round_in_turn(model, TEXTS)
    changed = {name for name, value in model.network.state_dict().items() if not torch.equal(value, before[name])}
    assert changed
    assert not any("embeddings" in name and "project" not in name for name in changed)
    in_memory = model.encode(TEXTS)
    assert not np.array_equal(in_memory, exact)
    model.save(tmp_path / "turn", format="munjang-int8")
    alone, turn = (BiEncoder.load(tmp_path / name, "cpu", "float32").encode(TEXTS) for name in ("alone", "turn"))
    assert np.linalg.norm(turn - exact) < np.linalg.norm(alone - exact)


def test_sums_over_all_tokens(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, "cpu", "float32")
    once, twice = products(model, ["a cat sleeps"]), products(model, ["a cat sleeps", "a cat sleeps now"])
    for module, product in once.items():
        assert product.shape == (module.in_features, module.in_features)
        assert twice[module].diagonal().sum() > product.diagonal().sum() > 0


def test_no_texts(tiny_bert: Path) -> None:
    with pytest.raises(InputError, match="typical texts"):
        round_in_turn(BiEncoder.load(tiny_bert, "cpu", "float32"), [])
