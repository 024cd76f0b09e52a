"""Whole models in 8 bits: near enough to float32 on every CPU, by layer in the fastest way that is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.errors import InputError, UnsupportedModel
from munjang.nn.cpu import has_vnni
from munjang.nn.int8 import prepack
from munjang.nn.int8.layer import has_static_scales
from munjang.nn.prepacked import Exact
from tests.models import NATIVE
from tests.texts import mixed, natural


def ways(model: BiEncoder) -> list[str]:
    """How each layer is computed."""
    return [
        "static" if has_static_scales(block) else type(block.qkv.prepacked).__name__
        for block in model.network.encoder.blocks
    ]


@pytest.mark.parametrize("family", NATIVE)
def test_every_family(family: str, make: Callable[..., Path], int8_by: str, whatever_the_loss: None) -> None:
    exact, small = (BiEncoder.load(make(family), device="cpu", dtype=name) for name in ("float32", "int8"))
    texts = mixed(60, longest=40)
    cosines = (exact.encode(texts, normalize=True) * small.encode(texts, normalize=True)).sum(1)
    assert cosines.mean() > 0.99
    assert cosines.mean() < 1  # it is not the exact path


def test_a_text_does_not_depend_on_its_neighbours(tiny_bert: Path, int8_by: str, whatever_the_loss: None) -> None:
    model, texts = BiEncoder.load(tiny_bert, device="cpu", dtype="int8"), mixed(80, longest=60)
    together = model.encode(texts, normalize=True)
    alone = np.stack([model.encode(text, normalize=True) for text in texts])
    assert np.abs(together - alone).max() < 1e-2  # a code that falls the other way; measured 1e-3
    assert np.abs(together - alone).mean() < 1e-4


@pytest.mark.parametrize("name", ["minilm", None], ids=["MiniLM", "ko-en-small"])
def test_the_promise(name: str | None, request: pytest.FixtureRequest) -> None:
    """Mean cosine 0.997 and smallest 0.985 to float32, on Korean and English passages (docs/guides/load.md)."""
    folder = None if name is None else request.getfixturevalue(name)
    exact, small = (BiEncoder.load(folder, device="cpu", dtype=dtype) for dtype in ("float32", "int8"))
    assert ways(small) != ["Exact"] * len(ways(small))
    texts = natural(40)
    cosines = (exact.encode(texts) * small.encode(texts)).sum(1)
    assert cosines.mean() >= 0.997
    assert cosines.min() >= 0.985


def test_the_bundled_re_ranker_keeps_its_scores() -> None:
    exact, small = (CrossEncoder.load(device="cpu", dtype=name) for name in ("float32", "int8"))
    texts = natural(24)
    pairs = [(texts[row][:60], texts[(row + shift) % 24]) for row in range(20) for shift in (0, 7)]
    expected, found = (model.predict(pairs, activation="Identity") for model in (exact, small))
    assert np.corrcoef(expected, found)[0, 1] > 0.999
    assert np.abs(expected - found).mean() < 0.03 * expected.std()  # eight layers: 0.021 on VNNI


def test_ranges_where_the_cpu_has_vnni_and_rows_elsewhere(
    tiny_bert: Path, make: Callable[..., Path], whatever_the_loss: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(prepack.SCALES_VARIABLE, raising=False)
    assert set(ways(BiEncoder.load(tiny_bert, "cpu", "int8"))) == {"static" if has_vnni() else "DynamicPacking"}
    for family in ("albert", "modernbert"):  # not plain
        assert set(ways(BiEncoder.load(make(family), "cpu", "int8"))) == {"DynamicPacking"}
    monkeypatch.setattr("munjang.nn.int8.static.has_vnni", lambda: False)
    monkeypatch.setattr("munjang.nn.int8.prepack.has_vnni", lambda: False)
    assert set(ways(BiEncoder.load(tiny_bert, "cpu", "int8"))) == {"DynamicPacking"}


def test_layers_that_change_too_much_stay_exact(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stricter bar moves layers on, worst first, until the sample passes; one out of reach moves all of them."""
    monkeypatch.setenv(prepack.SCALES_VARIABLE, "dynamic")
    counts = []
    for bar in (1.0, 0.001):
        monkeypatch.setattr(prepack, "MAX_LOSS", bar)
        counts.append(ways(BiEncoder.load(minilm, "cpu", "int8")).count("DynamicPacking"))
    assert counts[0] == 6
    assert sorted(counts, reverse=True) == counts
    assert 0 < min(counts) < 6
    monkeypatch.setattr(prepack, "MAX_LOSS", -1.0)
    with pytest.warns(UserWarning, match="6 of its 6 layers stay in float32"):
        model = BiEncoder.load(minilm, "cpu", "int8")
    assert all(isinstance(layer.prepacked, Exact) for block in model.network.encoder.blocks for layer in block.products)
    texts = natural(20)
    np.testing.assert_allclose(model.encode(texts), BiEncoder.load(minilm, "cpu").encode(texts), atol=2e-6)


def test_training_drops_them(tiny_bert: Path, whatever_the_loss: None) -> None:
    block = BiEncoder.load(tiny_bert, "cpu", "int8").network.encoder.blocks[0]
    block.up.train()
    assert not has_static_scales(block)
    assert block.up.prepacked is None


def test_saving_writes_the_float_weights(tiny_bert: Path, tmp_path: Path) -> None:
    BiEncoder.load(tiny_bert, device="cpu", dtype="int8").save(tmp_path / "saved")
    texts = mixed(10, longest=20)
    expected = BiEncoder.load(tiny_bert, device="cpu").encode(texts)
    np.testing.assert_allclose(BiEncoder.load(tmp_path / "saved", device="cpu").encode(texts), expected, atol=2e-6)


def test_cross_encoders(make: Callable[..., Path], int8_by: str, whatever_the_loss: None) -> None:
    folder = make("bert", kind="cross", num_labels=1)
    exact, small = (CrossEncoder.load(folder, device="cpu", dtype=name) for name in ("float32", "int8"))
    pairs = list(zip(mixed(30, longest=20), mixed(30, longest=30), strict=True))
    expected, found = exact.predict(pairs), small.predict(pairs)
    assert np.corrcoef(expected, found)[0, 1] > 0.9  # of weights drawn wide; vocabularies differ from run to run
    assert not np.array_equal(expected, found)


def test_what_has_no_8_bit_path(make: Callable[..., Path], tiny_bert: Path) -> None:
    with pytest.raises(UnsupportedModel, match="encoders that Munjang computes itself"):
        BiEncoder.load(make("qwen3"), device="cpu", dtype="int8")
    with pytest.raises(InputError, match="The device"):
        BiEncoder.load(tiny_bert, device="cuda:7", dtype="int8")


def test_ranges_stay_where_they_are_good_enough(minilm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_vnni():
        pytest.skip("ranges need VNNI")
    monkeypatch.delenv(prepack.SCALES_VARIABLE, raising=False)
    counts = []
    for bar in (1.0, 0.001):
        monkeypatch.setattr(prepack, "MAX_LOSS", bar)
        counts.append(ways(BiEncoder.load(minilm, "cpu", "int8")).count("static"))
    assert counts[0] == 6
    assert counts[1] < 6
