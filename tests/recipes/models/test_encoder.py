"""The encoder's stage: what stays, how vectors are levelled, and how far the weights move."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder
from recipes.models.encoder import Stays, blend, copy_of, levelled, levelling, own_encoder, tail_of

TEXTS = ["고양이가 소파에서 잔다.", "A cat sleeps on the sofa.", "비가 온다.", "Prices rose again."]


@pytest.fixture
def model(make: Callable[..., Path]) -> BiEncoder:
    return BiEncoder.load(make("xlm-roberta"), "cpu", "float32")


def test_a_common_part_is_projected_away() -> None:
    random = np.random.default_rng(1)
    own = random.normal(size=(400, 16))
    own[:, 0] = 0
    own *= np.sqrt(0.6) / np.linalg.norm(own, axis=1, keepdims=True)
    vectors = own.astype(np.float32)
    vectors[:, 0] = np.sqrt(0.4)  # every vector has the same part in one direction, so every cosine has 0.4 too much
    layer, middle = levelling(vectors)
    assert middle == pytest.approx(0.4, abs=1e-3)
    made = layer(torch.from_numpy(vectors)).detach().numpy()
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    wanted = (vectors @ vectors.T - 0.4) / 0.6
    np.testing.assert_allclose(made @ made.T, wanted, atol=2e-3)


def test_levelled_vectors_are_those_of_the_saved_folder(model: BiEncoder, tmp_path: Path) -> None:
    before = model.encode(TEXTS)
    made, middle = levelled(model, TEXTS)
    assert 0 < middle < 1
    np.testing.assert_array_equal(model.encode(TEXTS), before)
    layer = tail_of(made)[0]
    wanted = layer(torch.from_numpy(model.encode(TEXTS, normalize=False))).detach().numpy()
    np.testing.assert_allclose(made.encode(TEXTS, normalize=False), wanted, atol=1e-5)
    copy_of(made).save(tmp_path / "level")
    np.testing.assert_allclose(BiEncoder.load(tmp_path / "level", "cpu").encode(TEXTS), made.encode(TEXTS), atol=1e-5)
    again, none = levelled(BiEncoder.load(tmp_path / "level", "cpu", "float32"), TEXTS)
    assert none == 0
    assert len(tail_of(again)) == len(tail_of(made)), "one layer is enough"


def test_weights_move_a_share_of_the_way(model: BiEncoder) -> None:
    start = levelled(model, TEXTS)[0]  # what is in memory counts, not what the folder holds
    trained = copy_of(start)
    with torch.no_grad():
        for parameter in own_encoder(trained).parameters():
            parameter.add_(1.0)
    made = blend(start, trained, 0.25)
    for moved, first in zip(own_encoder(made).parameters(), own_encoder(start).parameters(), strict=True):
        torch.testing.assert_close(moved, first + 0.25)
    assert len(tail_of(made)) == len(tail_of(start))


def test_cosines_stay_or_are_stretched() -> None:
    outputs = [torch.randn(3, 8, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    teacher = torch.stack(outputs, dim=1)
    assert float(Stays(0.0, 5.0)(outputs, {"teacher": teacher})) == pytest.approx(0, abs=1e-6)
    unit = torch.nn.functional.normalize(torch.cat(outputs), dim=1).numpy()
    cosines = unit @ unit.T
    costs = (cosines - (cosines - 0.5) / 0.5) ** 2  # by hand: 0.5 becomes 0, 1 stays 1
    wanted = 5 * (np.diagonal(costs, 3).mean() + costs.mean())
    assert float(Stays(0.5, 5.0)(outputs, {"teacher": teacher})) == pytest.approx(wanted, rel=1e-5)
