from pathlib import Path

import pytest
import torch

from munjang import BiEncoder
from munjang.nn.cpu import has_vnni
from munjang.nn.int8.weights import MEAN_CORRECTION_WEIGHT, equaliser, equalisers, quantize_weights, rounding_loss
from munjang.nn.linear import MAX_ROWS


def test_quantizing_twice_changes_nothing() -> None:
    weight = torch.randn(30, 20)
    codes, step = quantize_weights(weight)
    again, same_step = quantize_weights(codes * step[:, None])
    assert torch.equal(codes, again)
    assert torch.allclose(step, same_step, rtol=1e-6)


@pytest.mark.parametrize("columns", [1, 2, 7, 384])
def test_pairs_fit_into_16_bits(columns: int) -> None:
    """Every sum of two products with inputs up to 255, number by number."""
    torch.manual_seed(columns)
    weight = torch.randn(50, columns) ** 3
    codes, step = quantize_weights(weight, is_pairwise=True)
    assert (codes * step[:, None] - weight).abs().max() <= step.max() / 2 + 1e-6
    for row in codes.tolist():
        for one, other in zip(row[::2], [*row[1::2], 0], strict=False):
            assert 255 * (max(one, 0) + max(other, 0)) <= 32767
            assert 255 * (min(one, 0) + min(other, 0)) >= -32768


def test_only_pairs_of_one_sign_cost_accuracy() -> None:
    assert quantize_weights(torch.tensor([[1.0, -1.0, 0.5, 0.5]]), is_pairwise=True)[0].tolist() == [
        [127, -127, 64, 64]
    ]
    assert quantize_weights(torch.tensor([[1.0, 1.0, -0.5, 0.0]]), is_pairwise=True)[0].tolist() == [[64, 64, -32, 0]]


@pytest.mark.parametrize("rows", [2, 64, 512])
@pytest.mark.parametrize("columns", [48, 384, 1552])
def test_sums_are_exact_at_the_limit(rows: int, columns: int) -> None:
    """Inputs of 255 against the largest pairs that are allowed: one sum that overflows would be off by thousands."""
    whole = torch.zeros(40, columns, dtype=torch.int8)
    whole[0::4, 0::2], whole[0::4, 1::2] = 127, 1
    whole[1::4, 0::2], whole[1::4, 1::2] = -127, -1
    whole[2::4], whole[3::4, 1::4], whole[3::4, 2::4] = 64, 127, 127
    if has_vnni():
        whole[2::4] = 127
    codes = torch.full((rows, columns), 255, dtype=torch.uint8)
    codes[:, ::7] = 254
    packed = torch.ops.onednn.qlinear_prepack(whole, [MAX_ROWS, columns])
    found = torch.ops.onednn.qlinear_pointwise(
        *(codes, 1.0, 128, packed, torch.ones(40), None, None, 1.0, 0, torch.float32, "none", [], "")
    )
    expected = (codes.double() - 128) @ whole.double().T
    assert (found - expected).abs().max() <= expected.abs().max() * 1e-6


def test_what_rounding_takes() -> None:
    weight, mean = torch.randn(6, 10), torch.randn(10)
    codes, step = quantize_weights(weight)
    lost = weight @ mean - (codes * step[:, None]) @ mean
    assert torch.allclose(rounding_loss(weight, codes, step, mean), MEAN_CORRECTION_WEIGHT * lost, atol=1e-6)


def test_equaliser_by_what_is_left_to_the_weights() -> None:
    weight, largest = torch.ones(4, 2), torch.tensor([1.0, 256.0])
    assert equaliser(weight, largest, 0.7).tolist() == [2**-5, 2.0]  # 256 ** 0.7 is 48.5: 1 / 24.8 and 48.5 / 24.8
    assert equaliser(weight, largest, 0.5).tolist() == [2**-3, 2.0]  # 1 / 8.5 and 16 / 8.5


def test_large_columns_are_shrunk(tiny_bert: Path) -> None:
    encoder = BiEncoder.load(tiny_bert).network.encoder
    qkv = encoder.blocks[0].qkv
    with torch.no_grad():
        encoder.embeddings.norm.weight[3] = 200
        equal = equalisers(encoder)
    assert set(equal) == {layer for block in encoder.blocks for layer in (block.qkv, block.up)}
    assert int(equal[qkv].argmax()) == 3
    assert torch.equal(torch.log2(equal[qkv]), torch.log2(equal[qkv]).round())
