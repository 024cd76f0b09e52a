"""The Triton kernels, followed step by step on the CPU by Triton's own interpreter, against plain torch."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")


def test_kernels_by_the_interpreter() -> None:
    """In a process of its own: the interpreter has to be asked for before Triton is imported."""
    code = "from tests.nn.test_cuda import check; check()"
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), *sys.path])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=root)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "checked" in done.stdout


def check() -> None:
    """All kernels over texts of 1 to 150 tokens."""
    import numpy as np
    import torch
    from torch import nn

    from munjang.nn import cuda
    from munjang.text.packing import pack

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
            found = cuda.attend(qkv, begin, end, bias, window)
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
    print("checked")
