"""The encoder's stage: what stays, and how far the weights move."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from munjang import BiEncoder
from recipes.models.encoder import Stays, blend, copy_of, own_encoder

TEXTS = ["고양이가 소파에서 잔다.", "A cat sleeps on the sofa.", "비가 온다.", "Prices rose again."]


@pytest.fixture
def model(make: Callable[..., Path]) -> BiEncoder:
    return BiEncoder.load(make("xlm-roberta"), "cpu", "float32")


def test_weights_move_a_share_of_the_way(model: BiEncoder) -> None:
    trained = copy_of(model)
    with torch.no_grad():
        for parameter in own_encoder(model).parameters():
            parameter.sub_(0.5)  # what is in memory counts, not what the folder holds
        for parameter in own_encoder(trained).parameters():
            parameter.add_(0.5)
    made = blend(model, trained, 0.25)
    for moved, first in zip(own_encoder(made).parameters(), own_encoder(model).parameters(), strict=True):
        torch.testing.assert_close(moved, first + 0.25)


def test_cosines_stay() -> None:
    outputs = [torch.randn(3, 8, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    teacher = torch.stack(outputs, dim=1)
    assert float(Stays(5.0)(outputs, {"teacher": teacher})) == pytest.approx(0, abs=1e-6)
    others = [torch.randn(3, 8, generator=torch.Generator().manual_seed(seed)) for seed in (3, 4)]
    student, wanted = (torch.nn.functional.normalize(torch.cat(each), dim=1).numpy() for each in (others, outputs))
    costs = (student @ student.T - wanted @ wanted.T) ** 2
    cost = 5 * (np.diagonal(costs, 3).mean() + costs.mean())
    assert float(Stays(5.0)(others, {"teacher": teacher})) == pytest.approx(cost, rel=1e-5)
