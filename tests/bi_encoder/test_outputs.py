"""Outputs: order, outputs, dimensions, precision."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.vectors import precision
from munjang.vectors.similarity import unit
from tests.bi_encoder.given import TEXTS
from tests.seen import tokens_seen
from tests.texts import mixed


def test_order_is_kept_and_equal_texts_are_computed_once(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = mixed(40, longest=30)
    shuffled = [texts[row] for row in np.random.default_rng(0).integers(0, 40, 200)]
    seen = tokens_seen(model.network.encoder, monkeypatch)
    found = model.encode(shuffled)
    assert sum(seen) == model.tokenizer(sorted(set(shuffled))).lengths.sum()  # no padding, no text twice
    place = {text: row for row, text in enumerate(texts)}
    np.testing.assert_allclose(found, model.encode(texts)[[place[text] for text in shuffled]], atol=2e-6)


@pytest.mark.parametrize("output", ["numpy", "torch", "tokens"])
def test_duplicates_in_every_output(model: BiEncoder, output: str) -> None:
    found = model.encode(["a", "b c", "a"], output=output)
    assert len(found) == 3
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1][: len(found[0])])


def test_truncate_dim(model: BiEncoder, vectors: np.ndarray) -> None:
    np.testing.assert_allclose(model.encode(TEXTS, truncate_dim=5), vectors[:, :5], atol=2e-6)
    np.testing.assert_allclose(model.encode(TEXTS, truncate_dim=5, normalize=True), unit(vectors[:, :5]), atol=2e-6)
    np.testing.assert_allclose(model.encode(TEXTS, truncate_dim=32), vectors, atol=2e-6)
    for dim in (0, 33, -1):
        with pytest.raises(InputError, match=f"truncate_dim must be between 1 and 32, not {dim}"):
            model.encode(TEXTS, truncate_dim=dim)


@pytest.mark.parametrize("is_unit", [True, False])
def test_normalize_three_ways(make: Callable[..., Path], is_unit: bool) -> None:
    model = BiEncoder.load(make("bert", normalize=is_unit))
    raw, own, whole = (model.encode(TEXTS, normalize=how) for how in (False, None, True))
    assert np.abs(np.linalg.norm(raw, axis=1) - 1).min() > 0.01
    np.testing.assert_allclose(whole, unit(raw), atol=2e-6)
    np.testing.assert_allclose(own, whole if is_unit else raw, atol=2e-6)


def test_torch_output(model: BiEncoder, vectors: np.ndarray) -> None:
    found = model.encode(TEXTS, output="torch")
    assert isinstance(found, torch.Tensor)
    assert (found.dtype, found.device.type) == (torch.float32, "cpu")
    np.testing.assert_allclose(found.numpy(), vectors, atol=2e-6)
    assert not found.is_inference()
    (found.requires_grad_() * 2).sum().backward()  # it may go on in a training step
    assert model.encode("one", output="torch").shape == (32,)
    assert model.encode(TEXTS, output="torch", precision="ubinary").dtype == torch.uint8


def test_token_vectors(model: BiEncoder) -> None:
    states = model.encode(TEXTS, output="tokens")
    lengths = model.tokenizer(TEXTS).lengths.tolist()
    assert [state.shape for state in states] == [(length, 32) for length in lengths]
    assert all(state.dtype == np.float32 for state in states)
    means = np.stack([state.mean(0) for state in states])  # the model's own pooling
    np.testing.assert_allclose(unit(means), model.encode(TEXTS), atol=2e-6)
    assert model.encode("one", output="tokens").ndim == 2
    for option in ({"precision": "int8", "ranges": np.zeros((2, 32))}, {"truncate_dim": 4}, {"long": "average"}):
        with pytest.raises(InputError, match="token vectors as they are"):
            model.encode(TEXTS, output="tokens", **option)


def test_names_that_are_in_no_table(model: BiEncoder) -> None:
    for option, message in (
        ({"output": "numpi"}, "Unknown output 'numpi'.*Did you mean 'numpy'"),
        ({"precision": "int"}, "Unknown precision 'int'"),
        ({"long": "cut"}, "Unknown long 'cut'; choose from average, error, truncate"),
        ({"prompt_name": "poem"}, "Unknown prompt 'poem'"),
        ({"prompt": "a", "prompt_name": "b"}, "not both"),
        ({"prompt": 3}, "prompt should be a string, not int"),
        ({"batch_tokens": 0}, "batch_tokens must be at least 1, not 0"),
    ):
        with pytest.raises(InputError, match=message):
            model.encode(TEXTS, **option)


def test_calibrate_save_and_load(make: Callable[..., Path], tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert"))
    texts = mixed(60, longest=20)
    with pytest.raises(InputError, match=r"call model\.calibrate"):
        model.encode(texts, precision="int8")
    vectors = model.encode(texts)
    ranges = model.calibrate(iter(texts))
    assert np.array_equal(ranges, np.stack([vectors.min(0), vectors.max(0)]))
    codes = {
        name: model.encode(texts[:5], precision=name) for name in ("float16", "int8", "uint8", "binary", "ubinary")
    }
    assert [codes[name].dtype.name for name in codes] == ["float16", "int8", "uint8", "int8", "uint8"]
    assert [codes[name].shape[1] for name in codes] == [32, 32, 32, 4, 4]
    steps = (vectors[:5] - ranges[0]) / ((ranges[1] - ranges[0]) / 255)
    assert np.abs(codes["uint8"] - steps).max() <= 1.001
    assert np.array_equal(codes["int8"].astype(int) + 128, codes["uint8"])
    assert np.array_equal(np.unpackbits(codes["ubinary"], axis=1), (vectors[:5] > 0).astype(np.uint8))
    model.save(tmp_path / "saved")
    again = BiEncoder.load(tmp_path / "saved")
    assert np.array_equal(again.encode(texts[:5], precision="int8"), codes["int8"])
    assert np.array_equal(again.encode(texts[0], precision="int8"), codes["int8"][0])  # whatever else is in the batch
    assert np.array_equal(again.encode(texts[:5], precision="int8", truncate_dim=7), codes["int8"][:, :7])
    given = model.encode(texts[:5], precision="uint8", ranges=[[-1.0] * 32, [1.0] * 32])
    assert not np.array_equal(given, codes["uint8"])
    with pytest.raises(InputError, match=r"shape \[2, 32\], not \[2, 3\]"):
        model.encode(texts, precision="int8", ranges=np.zeros((2, 3)))
    for bad in ("one text", ["one text"], []):
        with pytest.raises(InputError):
            model.calibrate(bad)


def test_one_range_keeps_cosines(make: Callable[..., Path]) -> None:
    """A range of its own moves each component: what texts have in common is gone, and their cosines with it."""
    model, texts = BiEncoder.load(make("bert")), mixed(60, longest=20)
    vectors = model.encode(texts, normalize=True)

    def off() -> float:
        codes = model.encode(texts, precision="int8", normalize=True).astype(np.float32)
        codes /= np.linalg.norm(codes, axis=1, keepdims=True)
        return float(np.abs(codes @ codes.T - vectors @ vectors.T).max())

    model.ranges = precision.measure(vectors)
    by_component = off()
    ranges = model.calibrate(texts, one_range=True)
    assert np.array_equal(ranges, np.abs(model.encode(texts)).max() * np.repeat([[-1], [1]], 32, axis=1))
    model.ranges = precision.measure(vectors, one_range=True)
    assert off() < 0.02 < 0.2 < by_component
