"""Bounds: never below a score, whatever the type."""

import numpy as np
import pytest
import torch

from munjang.tasks.paraphrases import bounds as module
from munjang.tasks.paraphrases.bounds import bounds
from munjang.vectors.similarity import unit
from tests.tasks.paraphrases.test_mining import near


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scale", [1.0, 7.0])
def test_a_bound_is_never_below(dtype: torch.dtype, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_dtype", lambda vectors: (dtype, 0.1))
    monkeypatch.setattr(module, "MIN_SCORES_FOR_BOUNDS", 0)
    a, b = (torch.from_numpy(scale * unit(near(1500, 128, seed))) for seed in (0, 1))
    b[:100] = a[:100]  # equal ones leave no room
    found = bounds(a, b, 0.9 * scale * scale)
    assert not found.is_exact
    assert found.a_AH.shape[1] < 100
    assert found.a_AH.dtype is dtype
    products = (found.a_AH @ found.b_BH.T).float()
    exact = a.double() @ b.double().T
    assert bool((products + found.slack >= exact).all())
    assert float((products + found.slack - exact).min()) < 0.05 * scale * scale  # and not far above


def test_no_bounds_where_they_do_not_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_SCORES_FOR_BOUNDS", 0)
    flat = torch.from_numpy(unit(np.random.default_rng(0).normal(size=(1500, 64)).astype(np.float32)))
    assert bounds(flat, flat, 0.05).is_exact  # nearly every pair would pass
    assert bounds(flat, flat, -0.5).is_exact
    assert bounds(flat[:10], flat[:10], 0.9).is_exact
