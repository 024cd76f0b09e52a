"""8-bit layers in known ranges beside the same arithmetic in float64; whole networks beside float32."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from munjang import BiEncoder
from munjang.nn import ranges
from munjang.nn.encoder import Encoder
from munjang.nn.fixed import Fixed, Range, in_codes, is_fixed, parts
from munjang.nn.linear import Linear
from munjang.nn.packed import Int8, can_pack, in_steps, sample
from munjang.nn.ranges import behind_norm, equaliser, extremes_of, ladder
from tests.texts import mixed

needs_vnni = pytest.mark.skipif(
    not can_pack(torch.int8) or not torch.cpu._is_vnni_supported(), reason="this CPU has no 8-bit dot products"
)


@pytest.fixture(autouse=True)
def as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ranges.SWITCH, raising=False)


def test_not_where_rows_are_asked_for(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ranges.SWITCH, "rows")
    assert not ranges.can_fix(BiEncoder.load(tiny_bert, device="cpu").network.encoder)


def test_ranges() -> None:
    around = Range.around_zero(2.54)
    assert (around.zero, around.end) == (128, pytest.approx(2.54))
    behind = Range.behind_gelu(5.0)
    assert -behind.zero * behind.step == pytest.approx(-0.17, abs=behind.step)
    assert behind.end == pytest.approx(5.0, abs=behind.step)
    codes = in_codes(torch.tensor([[-9.0, -0.17, 0.0, 5.0, 9.0]]), behind.step, behind.zero)
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
    whole, scale = in_steps(weight * equal)
    middle = torch.randn(48) * 0.3
    codes = ((x - middle) / equal / given.step).round().clamp(-128, 127).double()
    expected = codes @ (whole.double() * scale.double()[:, None]).T * given.step + bias
    with torch.inference_mode():
        exact = Fixed(whole, scale, bias, given, torch.float32, (-middle / equal, 1 / equal))
        assert (exact(x, None, None) - expected).abs().max() < 2e-4
        assert (exact.onto(x, onto) - expected - onto).abs().max() < 2e-4
        assert (exact(x, F.gelu, None) - F.gelu(expected)).abs().max() < 2e-4
        between = Range.behind_gelu(8.0)
        found = Fixed(whole, scale, bias, given, between, (-middle / equal, 1 / equal))(x, F.gelu, None)
    assert found.dtype == torch.uint8
    values = (found.double() - between.zero) * between.step
    assert (values - F.gelu(expected).clamp(max=between.end)).abs().max() < between.step


def test_more_is_left_to_the_weights() -> None:
    weight, largest = torch.ones(4, 2), torch.tensor([1.0, 256.0])
    assert equaliser(weight, largest).tolist() == [2**-5, 2.0]  # 256 ** 0.7 is 48.5: 1 / 24.8 and 48.5 / 24.8


@needs_vnni
def test_which_layers(tiny_bert: Path, make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "NEAR", -1.0)  # weights that are drawn wide are hard to keep
    encoder = BiEncoder.load(tiny_bert, device="cpu", dtype="int8").network.encoder
    assert isinstance(encoder, Encoder)
    assert all(is_fixed(block) for block in encoder.blocks)
    encoder.blocks[0].up.train()
    assert not is_fixed(encoder.blocks[0])
    for family in ("albert", "modernbert"):
        other = BiEncoder.load(make(family), device="cpu", dtype="int8").network.encoder
        assert isinstance(other.blocks[0].down.packed, Int8)


@needs_vnni
def test_a_model_that_ranges_would_change_too_much_keeps_its_rows(
    minilm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = mixed(10, longest=30)
    monkeypatch.setenv(ranges.SWITCH, "rows")
    expected = BiEncoder.load(minilm, device="cpu", dtype="int8").encode(texts)
    monkeypatch.delenv(ranges.SWITCH)
    assert not np.array_equal(BiEncoder.load(minilm, device="cpu", dtype="int8").encode(texts), expected)
    monkeypatch.setattr(ranges, "NEAR", 0.99999)
    kept = BiEncoder.load(minilm, device="cpu", dtype="int8")
    assert isinstance(kept.network.encoder.blocks[0].down.packed, Int8)
    assert np.array_equal(kept.encode(texts), expected)


def test_without_vnni_every_row_keeps_its_scale(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not can_pack(torch.int8):
        pytest.skip("this CPU or torch has no 8-bit products")
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
    model = BiEncoder.load(tiny_bert, device="cpu", dtype="int8")
    assert isinstance(model.network.encoder.blocks[0].down.packed, Int8)
    assert np.isfinite(model.encode(mixed(5, longest=20))).all()


@needs_vnni
def test_without_bf16_attention_stays_in_fp32(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = BiEncoder.load(minilm, device="cpu")
    monkeypatch.setattr(ranges, "has_bf16", lambda: False)
    model = BiEncoder.load(minilm, device="cpu", dtype="int8")
    assert model.network.encoder.blocks[0].qkv.packed.dtype == torch.float32
    texts = mixed(40, longest=60)
    together = model.encode(texts)
    assert (exact.encode(texts) * together).sum(1).mean() > 0.997
    assert np.abs(together - np.stack([model.encode(text) for text in texts])).mean() < 1e-4


@needs_vnni
def test_a_text_keeps_its_vector(minilm: Path) -> None:
    model, texts = BiEncoder.load(minilm, device="cpu", dtype="int8"), mixed(60, longest=100)
    together, alone = model.encode(texts), np.stack([model.encode(text) for text in texts])
    assert np.abs(together - alone).max() < 1e-2  # a code that falls the other way
    assert np.abs(together - alone).mean() < 1e-4  # measured 1.4e-5


def test_the_extremes_of_every_column(tiny_bert: Path) -> None:
    encoder = BiEncoder.load(tiny_bert, device="cpu").network.encoder
    assert isinstance(encoder, Encoder)
    with torch.no_grad():
        batch = sample(encoder, ranges.SAMPLE_LENGTHS, has_ends=True)
        found, out = extremes_of(encoder, batch)
    assert out.shape == (batch.num_tokens, encoder.shape.width)
    block = encoder.blocks[0]
    assert len(found) == 4 * len(encoder.blocks)
    assert all((low <= high).all() for low, high in found.values())
    assert float(found[block.down][0].min()) > -0.18


@needs_vnni
def test_a_product_whose_columns_were_uneven() -> None:
    torch.manual_seed(0)
    layer, x = Linear(48, 20), torch.randn(200, 48)
    x[:, 3], x[:, 9] = x[:, 3] * 30, x[:, 9] * 0.1 + 50
    with torch.inference_mode():
        exact = layer(x)
        found = behind_norm(layer, (x.amin(0), x.amax(0)), torch.float32)(x, None, None)
        twice = behind_norm(
            layer, (x.amin(0), x.amax(0)), torch.float32, (torch.tensor([4, 4]), torch.tensor([0.0, -1]))
        )
        assert (found - exact).norm() < 0.02 * (exact - exact.mean(0)).norm()
        pair = twice(x, None, None)
    assert torch.allclose(pair[:, 0], found[:, 4], atol=1e-5)
    assert torch.allclose(pair[:, 1], found[:, 4] - 1, atol=1e-5)


@needs_vnni
def test_short_texts_are_within_the_ranges(minilm: Path) -> None:
    """They are mostly what stands around every text, which random words would not show."""
    exact, small = (BiEncoder.load(minilm, device="cpu", dtype=name) for name in ("float32", "int8"))
    assert exact.network.encoder.ends == ([101], [102])
    texts = ["", "a", "ok", "Short", "안녕"]
    assert (exact.encode(texts) * small.encode(texts)).sum(1).min() > 0.993  # the empty text 0.9868 without them
