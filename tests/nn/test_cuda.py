"""The Triton kernels, followed step by step on the CPU by Triton's own interpreter, against plain torch."""

import numpy as np
import pytest
import torch
from torch import nn

from munjang.text.packing import pack

pytest.importorskip("triton")


def test_kernels() -> None:
    """All kernels over texts of 1 to 150 tokens."""
    from munjang.nn import cuda
    from munjang.text import cuda as text_cuda

    torch.manual_seed(0)
    lengths = np.array([150, 70, 64, 33, 33, 0, 7, 1, 1])
    num_tokens = int(lengths.sum())
    batch = pack(np.zeros(num_tokens, np.int64), lengths)
    begin, end = batch.bounds
    assert [int(value) for value in (begin[0], end[0], begin[150], end[219], begin[-1])] == [0, 150, 150, 220, 358]
    qkv = torch.randn(num_tokens, 3, 2, 16)
    by_distance = torch.randn(2, 2 * 149 + 1)
    for bias in (None, by_distance):
        for window in (None, 5):
            found = cuda.attend(qkv, begin, end, 150, bias, window)
            short = cuda.attend(qkv, begin, end, 1, bias, window)  # by the tile for short texts
            torch.testing.assert_close(short, found, atol=2e-5, rtol=1e-4)
            start = 0
            for length in lengths.tolist():
                query, key, value = qkv[start : start + length].permute(1, 2, 0, 3)
                place = torch.arange(length)
                distance = place[:, None] - place[None]
                scores = query @ key.transpose(1, 2) / 4 + (0 if bias is None else bias[:, distance + 149])
                if window is not None:
                    scores = scores.masked_fill(distance.abs() > window, float("-inf"))
                expected = (scores.softmax(-1) @ value).transpose(0, 1)
                torch.testing.assert_close(found[start : start + length], expected, atol=2e-5, rtol=1e-4)
                start += length
    x, onto = torch.randn(11, 40), torch.randn(11, 40)
    for has_bias in (True, False):
        norm = nn.LayerNorm(40, bias=has_bias).requires_grad_(False)
        norm.weight.normal_()
        torch.testing.assert_close(cuda.add_norm(x, onto, norm), norm(x + onto), atol=1e-5, rtol=1e-4)
        word, position, segment = (nn.Embedding(size, 40).requires_grad_(False) for size in (30, 20, 2))
        ids, places, types = torch.randint(0, 30, (11,)), torch.arange(11), torch.arange(11) % 2
        for tables, kinds in (((word, position, segment), types), ((word, position, segment), None)):
            plain = word(ids) + position(places + 2) + (segment(types) if kinds is not None else segment.weight[0])
            found = cuda.embed_norm(ids, places, kinds, tables, 2, norm)
            torch.testing.assert_close(found, norm(plain), atol=1e-5, rtol=1e-4)
        found = cuda.embed_norm(ids, places, None, (word, None, None), 0, norm)
        torch.testing.assert_close(found, norm(word(ids)), atol=1e-5, rtol=1e-4)
    tokens = torch.randn(num_tokens, 40)
    expected = torch.stack([part.sum(0) / max(len(part), 1) for part in tokens.split(lengths.tolist())])
    torch.testing.assert_close(cuda.average(tokens, batch.starts_B), expected, atol=1e-4, rtol=1e-4)
    begins, ends = torch.empty_like(begin), torch.empty_like(end)
    text_cuda.run(text_cuda.bound, len(lengths), batch.starts_B, begins, ends)
    assert torch.equal(begins, begin)
    assert torch.equal(ends, end)


def test_rows() -> None:
    """Unit length and places of rows; those that are not numbers are counted."""
    from munjang.nn import cuda

    rows, num_bad = torch.randn(7, 40), torch.zeros(1, dtype=torch.int64)
    rows[3] = 0
    torch.testing.assert_close(cuda.unit(rows), nn.functional.normalize(rows), atol=1e-6, rtol=1e-6)
    order, out = torch.randperm(9)[:7], torch.zeros(9, 40)
    rows[1, 2], rows[5, 39], rows[5, 0] = float("nan"), float("inf"), float("-inf")
    cuda.scatter(rows, order, out, num_bad)
    torch.testing.assert_close(out[order], rows, equal_nan=True)
    assert int(num_bad) == 2
    cuda.scatter(rows, order, out)
    assert int(num_bad) == 2


def test_training_kernels() -> None:
    """Values and gradients against torch's own, without dropout; with it, its share and that it is drawn again."""
    from munjang.nn import cuda_training
    from munjang.nn.attention import runs

    torch.manual_seed(0)
    lengths = np.array([150, 70, 33, 33, 7, 1])
    batch = pack(np.zeros(int(lengths.sum()), np.int64), lengths)
    qkv = torch.randn(batch.num_tokens, 3, 2, 16)
    slope = torch.randn(batch.num_tokens, 2, 16)
    found, wanted = qkv.clone().requires_grad_(), qkv.clone().requires_grad_()
    out = cuda_training.attend(found, *batch.bounds, 150, 0.0)
    plain = runs(wanted, batch, None, 0.0, None)
    torch.testing.assert_close(out, plain, atol=2e-5, rtol=1e-4)
    out.backward(slope)
    plain.backward(slope)
    torch.testing.assert_close(found.grad, wanted.grad, atol=5e-5, rtol=1e-3)

    # with dropout the result is linear in the values: the gradient must use the same mask as the forward pass
    torch.manual_seed(1)
    found = qkv.clone().requires_grad_()
    out = cuda_training.attend(found, *batch.bounds, 150, 0.3)
    out.backward(slope)
    moved = qkv.clone()
    moved[:, 2] += slope
    torch.manual_seed(1)
    other = cuda_training.attend(moved, *batch.bounds, 150, 0.3)
    torch.testing.assert_close((found.grad[:, 2] * slope).sum(), ((other - out) * slope).sum(), atol=1e-2, rtol=1e-3)
    ones = qkv.clone()
    ones[:, 2] = 1.0  # then every result is the share of weights that was kept, over 0.7
    kept = cuda_training.attend(ones, *batch.bounds, 150, 0.3)
    assert abs(float(kept[:220].mean()) - 1) < 0.05
    assert float(kept.std()) > 0.01
    shift = torch.zeros_like(qkv)
    shift[:, :2] = 1e-3 * torch.randn(qkv[:, :2].shape)
    values = []
    for sign in (1, -1):
        torch.manual_seed(1)
        moved_out = cuda_training.attend(qkv + sign * shift, *batch.bounds, 150, 0.3)
        values.append(float((moved_out.double() * slope).sum()))
    expected = float((found.grad * shift).sum())
    assert abs((values[0] - values[1]) / 2 - expected) < 0.02 * abs(expected) + 1e-4

    norm = nn.LayerNorm(40)
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
    x, onto, slope = torch.randn(11, 40), torch.randn(11, 40), torch.randn(11, 40)
    sides = []
    for fused in (True, False):
        norm.zero_grad()
        a, b = x.clone().requires_grad_(), onto.clone().requires_grad_()
        out = cuda_training.add_norm(a, b, norm, 0.0) if fused else norm(a + b)
        out.backward(slope)
        sides.append((out.detach(), a.grad, b.grad, norm.weight.grad.clone(), norm.bias.grad.clone()))
    for ours, theirs in zip(*sides, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)
    torch.manual_seed(2)
    a = x.clone().requires_grad_()
    cuda_training.add_norm(a, onto, norm, 0.4).backward(slope)
    dropped = a.grad == 0
    assert 0.3 < float(dropped.float().mean()) < 0.5
    b = x.clone().requires_grad_()
    norm(torch.where(dropped, 0.0, b / 0.6) + onto).backward(slope)
    torch.testing.assert_close(a.grad, b.grad, atol=2e-5, rtol=1e-4)
