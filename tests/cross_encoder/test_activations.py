"""Activations: by name, as a function, the checkpoint's own, and what gives no scores."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from munjang import CrossEncoder
from munjang.errors import InputError, UnsupportedModel
from munjang.nn import heads
from tests.cross_encoder.given import PAIRS


def test_activations(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    logits, many = scorer.predict(PAIRS, activation="Identity"), labels.predict(PAIRS, activation="Identity")
    sigmoid = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(scorer.predict(PAIRS), sigmoid, atol=1e-6)  # one label: a probability
    np.testing.assert_allclose(labels.predict(PAIRS), many, atol=1e-6)  # several: as they are
    np.testing.assert_allclose(scorer.predict(PAIRS, activation="sigmoid"), sigmoid, atol=1e-6)
    np.testing.assert_allclose(scorer.predict(PAIRS, activation=nn.Tanh()), np.tanh(logits), atol=1e-6)
    np.testing.assert_allclose(scorer.predict(PAIRS, activation=lambda x: x * 2), logits * 2, rtol=1e-6)
    softmax = np.exp(many) / np.exp(many).sum(1, keepdims=True)
    np.testing.assert_allclose(labels.predict(PAIRS, activation="Softmax"), softmax, atol=1e-6)
    np.testing.assert_allclose(labels.predict(PAIRS[0], activation="Softmax"), softmax[0], atol=1e-6)


def test_logits_as_its_own_scores(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu")
    for activation in (nn.Sigmoid(), nn.Sequential(nn.Linear(1, 1), nn.Tanh())):  # the second has weights to train
        scorer.activation = activation
        logits = scorer.predict(PAIRS, activation="Identity").tolist()
        np.testing.assert_allclose(scorer.own_scores(logits), scorer.predict(PAIRS), atol=1e-6)
        assert scorer.own_scores([]) == []


def test_activations_refused(scorer: CrossEncoder) -> None:
    with pytest.raises(InputError, match=r"Unknown activation 'Sigmoyd'.*Did you mean 'Sigmoid'"):
        scorer.predict(PAIRS, activation="Sigmoyd")
    for given in (3, nn.Sigmoid):  # the class instead of an instance
        with pytest.raises(InputError, match=f"a name or a function of a tensor, not {given!r}"):
            scorer.predict(PAIRS, activation=given)  # type: ignore[arg-type]

    def broken(logits: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("my own mistake")

    with pytest.raises(RuntimeError, match="my own mistake"):
        scorer.predict(PAIRS, activation=broken)
    assert scorer.predict(PAIRS).shape == (20,)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda logits: logits.sum(), r"shape \[\]"),
        (lambda logits: logits[:, 0].sum(0, keepdim=True), r"shape \[1\]"),
        (lambda logits: logits.repeat(1, 2), r"shape \[20, 2\]"),  # which of the two would be the score?
        (lambda logits: logits.numpy(), "ndarray"),
        (lambda logits: None, "NoneType"),
    ],
)
def test_activations_that_give_no_scores(scorer: CrossEncoder, function: Any, given: str) -> None:
    with pytest.raises(InputError, match=rf"a tensor \[20, \.\.\.\] of logits \[20, 1\], not .*{given}"):
        scorer.predict(PAIRS, activation=function)


def test_activations_of_another_shape_or_type(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    logits = scorer.predict(PAIRS, activation="Identity")
    for function in (lambda x: x[:, 0], lambda x: x.double(), nn.PReLU(init=1)):  # flat, wider, with a gradient
        found = scorer.predict(PAIRS, activation=function)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, logits, rtol=1e-6)
    assert scorer.predict(PAIRS, activation=torch.Tensor.bfloat16).dtype == np.float32
    best = labels.predict(PAIRS, activation=lambda x: x.argmax(1))
    np.testing.assert_array_equal(best, labels.predict(PAIRS).argmax(1))


def test_the_activation_of_a_model_is_a_setting(make: Callable[..., Path], tmp_path: Path) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    logits = scorer.predict(PAIRS, activation="Identity")
    scorer.activation = "tanh"
    assert (scorer.info()["activation"], scorer.info()["scale"]) == ("Tanh", "tanh")
    np.testing.assert_allclose(scorer.predict(PAIRS), np.tanh(logits), atol=1e-6)
    with pytest.raises(InputError, match="Unknown activation 'tan'"):
        scorer.activation = "tan"
    scorer.activation = torch.sin
    assert scorer.info()["scale"] == scorer.rank("a", ["b"])[0].scale == "custom"
    np.testing.assert_allclose(scorer.predict(PAIRS), np.sin(logits), atol=1e-6)
    with pytest.raises(UnsupportedModel, match="not on the list of safe ones"):  # a folder that would never load
        scorer.save(tmp_path / "sine")
    assert not (tmp_path / "sine").exists()


def test_the_checkpoints_own_activation(make: Callable[..., Path], tmp_path: Path) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    for name in ("Identity", "Sigmoid", "Tanh"):
        scorer.activation = heads.ACTIVATIONS[name]()
        scorer.save(tmp_path / name)
        again = CrossEncoder.load(tmp_path / name)
        assert type(again.activation).__name__ == name
        np.testing.assert_allclose(again.predict(PAIRS), scorer.predict(PAIRS), atol=1e-6)
