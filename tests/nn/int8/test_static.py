"""8-bit layers with static scales beside the same arithmetic in float64; whole networks beside float32."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from munjang import BiEncoder
from munjang.nn.cpu import has_vnni
from munjang.nn.int8 import static
from munjang.nn.int8.codes import to_codes
from munjang.nn.int8.layer import Range, StaticPacking, parts
from munjang.nn.int8.observe import Columns
from munjang.nn.int8.static import ladder, prepack_after_norm
from munjang.nn.int8.weights import quantize_weights
from munjang.nn.linear import Linear
from tests.texts import mixed, natural

needs_vnni = pytest.mark.skipif(not has_vnni(), reason="ranges are for CPUs with 8-bit dot products")


def test_ranges() -> None:
    around = Range.around_zero(2.54)
    assert (around.zero, around.end) == (128, pytest.approx(2.54))
    behind = Range.after_gelu(5.0)
    assert -behind.zero * behind.step == pytest.approx(-0.17, abs=behind.step)
    assert behind.end == pytest.approx(5.0, abs=behind.step)
    codes = to_codes(torch.tensor([[-9.0, -0.17, 0.0, 5.0, 9.0]]), behind.step, behind.zero)
    assert codes.tolist() == [[0, 0, behind.zero, 255, 255]]


def test_rows_in_blocks() -> None:
    assert list(parts(3)) == [slice(0, 3)]
    assert list(parts(1024)) == [slice(0, 512), slice(512, 1024)]
    assert list(parts(513)) == [slice(0, 512), slice(512, 513)]


def test_a_ladder_gets_to_the_top() -> None:
    top = torch.rand(50) * 3
    top[[4, 30]] = torch.tensor([40.0, 17.0])
    columns, rungs, reach = ladder(top, 16)
    assert len(columns) == len(rungs) == 66
    assert columns[:50].tolist() == list(range(50))
    assert reach < 4  # 40 without it
    for column in range(50):
        own = rungs[columns == column]
        assert own.tolist() == list(range(len(own)))
        assert top[column] <= reach * len(own) + 1e-5


def test_a_column_and_its_ladder_are_the_column() -> None:
    """GELU in steps is GELU, but for the places where two rungs meet."""
    x, reach = torch.linspace(-6, 22, 2001), 6.0
    steps = sum(F.gelu(x - rung * reach).clamp(max=reach) for rung in range(4))
    error = (F.gelu(x) - steps).abs()
    assert error.max() < 0.18
    assert error.mean() < 0.06


@needs_vnni
@pytest.mark.parametrize("rows", [2, 64, 512])
def test_the_same_as_by_hand(rows: int) -> None:
    torch.manual_seed(rows)
    weight, bias, x, onto = torch.randn(20, 48), torch.randn(20), torch.randn(rows, 48), torch.randn(rows, 20)
    given, equal = Range.around_zero(3.0), torch.exp2(torch.randint(-1, 2, (48,)).float())
    whole, scale = quantize_weights(weight * equal)
    middle = torch.randn(48) * 0.3
    codes = ((x - middle) / equal / given.step).round().clamp(-128, 127).double()
    expected = codes @ (whole.double() * scale.double()[:, None]).T * given.step + bias
    with torch.inference_mode():
        exact = StaticPacking(whole, scale, bias, given, torch.float32, (-middle / equal, 1 / equal))
        assert (exact(x, None, None) - expected).abs().max() < 2e-4
        assert (exact.onto(x, onto) - expected - onto).abs().max() < 2e-4
        assert (exact(x, F.gelu, None) - F.gelu(expected)).abs().max() < 2e-4
        between = Range.after_gelu(8.0)
        found = StaticPacking(whole, scale, bias, given, between, (-middle / equal, 1 / equal))(x, F.gelu, None)
    assert found.dtype == torch.uint8
    values = (found.double() - between.zero) * between.step
    assert (values - F.gelu(expected).clamp(max=between.end)).abs().max() < between.step


@needs_vnni
def test_without_bf16_attention_stays_in_fp32(
    minilm: Path, monkeypatch: pytest.MonkeyPatch, whatever_the_loss: None
) -> None:
    exact = BiEncoder.load(minilm, device="cpu")
    monkeypatch.setattr(static, "has_bf16", lambda: False)
    model = BiEncoder.load(minilm, device="cpu", dtype="int8")
    assert model.network.encoder.blocks[0].qkv.prepacked.dtype == torch.float32
    texts = natural(40)
    together = model.encode(texts)
    assert (exact.encode(texts) * together).sum(1).mean() > 0.997
    assert np.abs(together - np.stack([model.encode(text) for text in texts])).mean() < 1e-4


@needs_vnni
def test_a_text_keeps_its_vector(minilm: Path, whatever_the_loss: None) -> None:
    model, texts = BiEncoder.load(minilm, device="cpu", dtype="int8"), mixed(30, longest=100)
    together, alone = model.encode(texts), np.stack([model.encode(text) for text in texts])
    assert np.abs(together - alone).max() < 1e-2  # a code that falls the other way
    assert np.abs(together - alone).mean() < 1e-4  # measured 1.4e-5


@needs_vnni
def test_a_product_whose_columns_were_uneven() -> None:
    torch.manual_seed(0)
    layer, x = Linear(48, 20), torch.randn(200, 48)
    x[:, 3], x[:, 9] = x[:, 3] * 30, x[:, 9] * 0.1 + 50
    seen = Columns(x.amin(0), x.amax(0), x.mean(0))
    with torch.inference_mode():
        exact = layer(x)
        found = prepack_after_norm(layer, seen, torch.float32)(x, None, None)
        twice = prepack_after_norm(layer, seen, torch.float32, (torch.tensor([4, 4]), torch.tensor([0.0, -1])))
        assert (found - exact).norm() < 0.02 * (exact - exact.mean(0)).norm()
        pair = twice(x, None, None)
    assert torch.allclose(pair[:, 0], found[:, 4], atol=1e-5)
    assert torch.allclose(pair[:, 1], found[:, 4] - 1, atol=1e-5)


@needs_vnni
def test_short_texts_are_within_the_ranges(minilm: Path, whatever_the_loss: None) -> None:
    """They are mostly what stands around every text, which random words would not show."""
    exact, small = (BiEncoder.load(minilm, device="cpu", dtype=name) for name in ("float32", "int8"))
    assert exact.network.encoder.ends == ([101], [102])
    texts = ["", "a", "ok", "Short", "안녕"]
    assert (exact.encode(texts) * small.encode(texts)).sum(1).min() > 0.993  # the empty text 0.9868 without them
