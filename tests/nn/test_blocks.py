"""Attention in blocks beside the formula, text by text; bf16 products are computed by every CPU, quickly by some."""

import numpy as np
import pytest
import torch

from munjang.nn import blocks
from munjang.nn.attention import runs
from munjang.nn.blocks import Part, parts_of
from munjang.text.packing import pack
from tests.nn.test_attention import HEADS, WIDTH, batch_of, naive, random_qkv, some_bias

LENGTHS = [[1], [2, 2], [70], [16, 16, 16], [5, 5, 3, 3, 3, 1, 1], [3, 0, 3, 0], [1, 7, 2, 70, 2], list(range(1, 40))]


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: str(lengths)[:20])
def test_against_the_formula(lengths: list[int], has_bias: bool) -> None:
    qkv = (random_qkv(lengths) * 0.7).bfloat16()
    with torch.inference_mode():
        found = blocks.attend(qkv, batch_of(lengths), some_bias if has_bias else None)
    assert found.dtype == torch.bfloat16
    error = (found.double() - naive(qkv, lengths, has_bias, None)).abs()
    assert error.max() < 0.06  # scores of 8 have steps of 1/32 in bf16
    assert error.mean() < 0.006


def test_texts_of_about_one_length_share_a_block() -> None:
    lengths = [40, 40, 30, 20, 16, 3, 3]
    assert parts_of(batch_of(lengths)) == [
        Part(48, 2, [(0, 0, 2, 40)]),
        Part(32, 2, [(80, 0, 1, 30), (110, 1, 1, 20)]),
        Part(16, 3, [(130, 0, 1, 16), (146, 1, 2, 3)]),
    ]


def test_shapes_are_few() -> None:
    lengths = np.sort(np.random.default_rng(0).integers(1, 513, 3000))[::-1]
    parts = parts_of(pack(np.zeros(lengths.sum(), np.int32), np.ascontiguousarray(lengths)))
    assert sum(part.texts for part in parts) == 3000
    assert all(part.length % 16 == 0 for part in parts)
    assert all(part.texts * part.length <= max(blocks.MAX_BLOCK_TOKENS, part.length) for part in parts)
    assert len({(part.length, 1 << (part.texts - 1).bit_length()) for part in parts}) < 100


def test_a_text_does_not_depend_on_its_neighbours() -> None:
    lengths = [20] * 5 + [18, 17]
    qkv = random_qkv(lengths).bfloat16()
    with torch.inference_mode():
        together = blocks.attend(qkv, batch_of(lengths), None)
        alone = blocks.attend(qkv[40:60], batch_of([20]), None)
    assert torch.equal(together[40:60], alone)


@pytest.mark.parametrize("number", [5, 16, 23, 40, 101, 203])
@pytest.mark.parametrize("has_bias", [False, True])
def test_alone_is_the_same_to_the_bit(number: int, has_bias: bool) -> None:
    lengths, bias = [number, number, number - 1], some_bias if has_bias else None
    qkv = random_qkv(lengths).bfloat16()
    spare = torch.randn(9, *qkv.shape[1:]).bfloat16()  # rows past the text, whatever they hold
    with torch.inference_mode():
        together = blocks.attend(qkv, batch_of(lengths), bias)
        alone = blocks.attend_one(torch.cat([qkv[:number], spare]), number, bias)
    assert alone.shape == (number + 9, HEADS, WIDTH)
    assert torch.equal(alone[:number], together[:number])
    assert alone.isfinite().all()


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_too_large_go_another_way(sign: int) -> None:
    """The text that has them, and no other one of its block."""
    lengths = [9, 9, 9]
    qkv = random_qkv(lengths).bfloat16()
    qkv[9:18, 0], qkv[9:18, 1] = 30, 30.0 * sign  # scores of 2,500 and -2,500
    with torch.inference_mode():
        found = blocks.attend(qkv, batch_of(lengths), None)
        others = blocks.attend(qkv[:9], batch_of([9]), None)
        alone = blocks.attend_one(qkv[9:18], 9, None)
    assert (found[9:18].double() - naive(qkv[9:18], [9], False, None)).abs().max() < 0.03
    assert torch.equal(found[9:18], alone)
    assert torch.equal(found[:9], others)


def test_long_texts_have_no_scores_in_memory() -> None:
    """Beyond MAX_BLOCK_LENGTH tokens torch's own attention computes them, a text at a time."""
    torch.manual_seed(0)
    lengths = np.array([blocks.MAX_BLOCK_LENGTH + 40, blocks.MAX_BLOCK_LENGTH + 3, 20])
    batch = pack(np.zeros(int(lengths.sum()), np.int64), lengths)
    qkv = torch.randn(int(lengths.sum()), 3, 2, 16, dtype=torch.bfloat16)
    expected = runs(qkv.float(), batch, None, 0.0, None)
    assert (blocks.attend(qkv, batch, None).float() - expected).abs().max() < 0.02
