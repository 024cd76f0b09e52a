"""The encoder's stage: what stays, what is centred, and how far the weights move."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder
from recipes.models.encoder import Stays, blend, centre, copy_of, own_encoder

TEXTS = ["고양이가 소파에서 잔다.", "A cat sleeps on the sofa.", "비가 온다.", "Prices rose again."]


@pytest.fixture
def model(make: Callable[..., Path]) -> BiEncoder:
    return BiEncoder.load(make("xlm-roberta"), "cpu", "float32")


def test_centred_vectors_have_mean_zero(model: BiEncoder) -> None:
    before, centred = model.encode(TEXTS, normalize=False), copy_of(model)
    centre(centred, TEXTS)
    after = centred.encode(TEXTS, normalize=False)
    np.testing.assert_allclose(after, before - before.mean(0), atol=1e-5)
    np.testing.assert_array_equal(model.encode(TEXTS, normalize=False), before)


def test_weights_move_a_share_of_the_way(model: BiEncoder) -> None:
    centre(model, TEXTS)  # what is in memory counts, not what the folder holds
    trained = copy_of(model)
    with torch.no_grad():
        for parameter in own_encoder(trained).parameters():
            parameter.add_(1.0)
    made = blend(model, trained, 0.25)
    for moved, first in zip(own_encoder(made).parameters(), own_encoder(model).parameters(), strict=True):
        torch.testing.assert_close(moved, first + 0.25)


def test_cosines_stay_or_are_stretched() -> None:
    outputs = [torch.randn(3, 8, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    teacher = torch.stack(outputs, dim=1)
    assert float(Stays(0.0, 5.0)(outputs, {"teacher": teacher})) == pytest.approx(0, abs=1e-6)
    unit = torch.nn.functional.normalize(torch.cat(outputs), dim=1).numpy()
    cosines = unit @ unit.T
    costs = (cosines - (cosines - 0.5) / 0.5) ** 2  # by hand: 0.5 becomes 0, 1 stays 1
    wanted = 5 * (np.diagonal(costs, 3).mean() + costs.mean())
    assert float(Stays(0.5, 5.0)(outputs, {"teacher": teacher})) == pytest.approx(wanted, rel=1e-5)
