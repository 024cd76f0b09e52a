"""Every attention kernel that runs here beside the formula, text by text, in float64; and who is chosen when."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from munjang.nn import attention
from munjang.nn.attention import KERNELS, Demand, attend, choose, jagged, runs, tiles, tiles_with_gradient, varlen
from munjang.text.packing import Packed, pack

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
# `jagged` is chosen on CUDA only, but torch computes it here too; `varlen` needs a GPU (benchmarks/gpu_check.py)
CAN = {"runs": {"bias", "window"}, "jagged": set[str]()}
HERE = [kernel for kernel, _ in KERNELS if kernel.__name__ in CAN]
HEADS, WIDTH = 3, 8


def batch_of(lengths: list[int]) -> Packed:
    return pack(np.zeros(sum(lengths), np.int32), np.array(lengths, np.int64))


def random_qkv(lengths: list[int], seed: int = 0) -> Tensor:
    return torch.randn(sum(lengths), 3, HEADS, WIDTH, generator=torch.Generator().manual_seed(seed)) * 2


def some_bias(length: int) -> Tensor:
    place = torch.arange(length)
    distance = (place[:, None] - place[None, :]).float()
    return torch.stack([torch.sin(distance * (head + 1)) * 3 for head in range(HEADS)])[None]


def naive(qkv_T3NK: Tensor, lengths: list[int], has_bias: bool, window: int | None) -> Tensor:
    """softmax(QKᵀ / √K + bias) V for each text by itself, in float64."""
    out, start = [], 0
    for length in lengths:
        query, key, value = qkv_T3NK[start : start + length].double().permute(1, 2, 0, 3)
        scores = query @ key.mT / math.sqrt(qkv_T3NK.shape[-1])
        if has_bias:
            scores = scores + some_bias(length)[0].double()
        if window is not None:
            for i, j in product(range(length), repeat=2):
                if abs(i - j) > window:
                    scores[:, i, j] = -math.inf
        out.append((scores.softmax(-1) @ value).transpose(0, 1))
        start += length
    return torch.cat(out) if out else qkv_T3NK[:, 0].double()


def test_what_runs_here() -> None:
    assert {kernel.__name__ for kernel, _ in KERNELS} == {"tiles", "tiles_with_gradient", "varlen", *CAN}


@pytest.mark.parametrize(
    ("kernel", "has_bias", "window"),
    [
        (kernel, has_bias, window)
        for kernel, has_bias, window in product(HERE, (False, True), (None, 1, 4, 64))
        if (not has_bias or "bias" in CAN[kernel.__name__]) and (window is None or "window" in CAN[kernel.__name__])
    ],
)
@pytest.mark.parametrize(
    "lengths",
    [[1], [2, 2], [70], [5, 5, 3, 3, 3, 1, 1], [3, 0, 3, 0], [1, 7, 2, 70, 2], list(range(1, 30))],
    ids=lambda lengths: str(lengths)[:20],
)
def test_against_the_formula(kernel: attention.Kernel, has_bias: bool, window: int | None, lengths: list[int]) -> None:
    qkv = random_qkv(lengths)
    found = kernel(qkv, batch_of(lengths), some_bias if has_bias else None, 0.0, window)
    expected = naive(qkv, lengths, has_bias, window)
    assert found.shape == (sum(lengths), HEADS, WIDTH)
    assert (found.double() - expected).abs().max() < 2e-6 * max(expected.abs().max().item(), 1)


@pytest.mark.parametrize(("dtype", "bound"), [(BF16, 0.04), (FP16, 0.005)])
def test_half_precision(dtype: torch.dtype, bound: float) -> None:
    lengths = [9, 9, 4]
    qkv = random_qkv(lengths).to(dtype)
    found = attend(qkv, batch_of(lengths), some_bias, 0.0, 3)
    assert found.dtype == dtype
    assert (found.double() - naive(qkv, lengths, True, 3)).abs().max() < bound


def test_no_tokens() -> None:
    for lengths in ([], [0, 0]):
        assert attend(random_qkv(lengths), batch_of(lengths)).shape == (0, HEADS, WIDTH)


def test_no_text_sees_another() -> None:
    lengths = [4, 4, 2]
    qkv = random_qkv(lengths)
    before = attend(qkv, batch_of(lengths))
    qkv[4:8] += 100  # the second text
    after = attend(qkv, batch_of(lengths))
    assert torch.equal(before[:4], after[:4])
    assert torch.equal(before[8:], after[8:])
    assert not torch.equal(before[4:8], after[4:8])


def test_gradients_reach_queries_keys_values_and_bias() -> None:
    lengths = [6, 6, 3]
    qkv = random_qkv(lengths).requires_grad_()
    weight = torch.ones(1, HEADS, 1, 1, requires_grad=True)
    attend(qkv, batch_of(lengths), lambda length: some_bias(length) * weight, 0.0, 2).square().sum().backward()
    assert qkv.grad is not None
    assert (qkv.grad.abs().sum((0, 2, 3)) > 0).all()
    assert weight.grad is not None
    assert (weight.grad.abs() > 0).all()


@pytest.mark.parametrize(("kernel", "window"), [(runs, None), (runs, 5), (jagged, None)])
def test_dropout_is_done_and_keeps_the_mean(kernel: attention.Kernel, window: int | None) -> None:
    draws, length = (1500 if kernel is runs else 150), 16
    bias = some_bias if kernel is runs else None
    text = random_qkv([length])
    torch.manual_seed(0)
    many = kernel(text.repeat(draws, 1, 1, 1), batch_of([length] * draws), bias, 0.3, window)
    many = many.view(draws, length, HEADS, WIDTH)
    plain = kernel(text, batch_of([length]), bias, 0.0, window)
    spread = many.std(0)
    assert (spread > 0.01).float().mean() > 0.99  # not silently left out
    error = (many.mean(0) - plain).abs() / (spread / math.sqrt(draws)).clamp(min=1e-6)
    assert error.max() < 6  # standard errors, over 384 numbers


def needs(device: str, dtype: torch.dtype = BF16, **more: object) -> Demand:
    usual: dict[str, object] = {"head_width": 64, "has_bias": False, "dropout": 0.0, "window": None}
    usual |= {"max_length": 100, "has_gradient": True}
    return Demand(device, dtype, **{**usual, **more})  # type: ignore[arg-type]


def test_our_own_kernel_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    inference = {"has_gradient": False}
    monkeypatch.setattr(attention, "has_triton", lambda: True)
    assert choose(needs("cuda", **inference)) is tiles
    assert choose(needs("cuda", FP16, window=64, has_bias=True, **inference)) is tiles
    assert choose(needs("cuda", max_length=5000, **inference)) is varlen
    assert choose(needs("cuda", max_length=5000, has_bias=True, **inference)) is tiles
    assert choose(needs("cuda", head_width=24, **inference)) is varlen
    assert choose(needs("cuda", FP32, **inference)) is jagged
    assert choose(needs("cuda", dropout=0.1, **inference)) is runs
    assert choose(needs("cuda")) is tiles_with_gradient
    assert choose(needs("cuda", dropout=0.1)) is tiles_with_gradient
    assert choose(needs("cuda", max_length=5000)) is varlen
    assert choose(needs("cuda", max_length=5000, dropout=0.1)) is tiles_with_gradient
    assert choose(needs("cuda", window=64)) is varlen
    assert choose(needs("cuda", has_bias=True)) is runs
    assert choose(needs("cuda", FP32)) is jagged
    assert choose(needs("cpu", **inference)) is runs
    monkeypatch.setattr(attention, "has_triton", lambda: False)
    assert choose(needs("cuda", **inference)) is varlen


@pytest.mark.parametrize("takes_window", [True, False], ids=["torch 2.11", "torch 2.10"])
def test_who_is_chosen(takes_window: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "_varlen_takes_window", lambda: takes_window)
    monkeypatch.setattr(attention, "has_triton", lambda: False)
    table = [
        (needs("cuda"), varlen),
        (needs("cuda", FP16), varlen),
        (needs("cuda", FP32), jagged),
        (needs("cuda", dropout=0.1), runs),
        (needs("cuda", head_width=12), jagged),
        (needs("cuda", has_bias=True), runs),
        (needs("cuda", FP32, has_bias=True), runs),
        (needs("cuda", window=64), varlen if takes_window else runs),
        (needs("cuda", FP32, window=64), runs),
        (needs("cuda", dropout=0.1, window=64), runs),
        *[(needs(device, dtype), runs) for device in ("cpu", "mps") for dtype in (BF16, FP16, FP32)],
    ]
    for need, kernel in table:
        assert choose(need) is kernel, need


def test_the_window_argument_of_this_torch() -> None:
    assert attention._varlen_takes_window() is (tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 11))


def test_every_demand_is_met() -> None:
    """No combination is without a kernel, and none gets one that would leave its bias, dropout or window out."""
    for device, dtype, has_bias, dropout, window, width in product(
        ("cpu", "cuda", "mps"), (BF16, FP16, FP32), (False, True), (0.0, 0.1), (None, 8), (5, 32, 64, 128, 256)
    ):
        kernel = choose(Demand(device, dtype, width, has_bias, dropout, window))
        if kernel in (tiles, varlen):
            assert device == "cuda"
            assert dtype != FP32
            assert not has_bias or kernel is tiles
            assert not dropout
        if kernel is jagged:
            assert device == "cuda"
            assert not has_bias
            assert window is None
