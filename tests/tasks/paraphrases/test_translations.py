"""Bitext: margins by hand, translations found, each text once."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.tasks.paraphrases.translations import bitext
from munjang.vectors.similarity import unit
from tests.tasks.paraphrases.test_mining import near


def test_the_margin_by_a_naive_version() -> None:
    a, b = near(40, seed=1), near(30, seed=2)
    found = bitext(a, b, num_neighbours=4)
    scores = unit(a) @ unit(b).T
    forth, back = np.sort(scores, 1)[:, -4:].mean(1), np.sort(scores, 0)[-4:].mean(0)
    margins = scores / ((forth[:, None] + back[None]) / 2)
    for pair in found:
        assert pair.score == pytest.approx(margins[pair.first, pair.second], rel=1e-4)
    assert len(set(found.first_P.tolist())) == len(found) == len(set(found.second_P.tolist()))
    assert (np.diff(found.scores_P) <= 0).all()


def test_translations_among_others() -> None:
    a = near(200, seed=3)
    order = np.random.default_rng(0).permutation(200)
    b = a[order[:120]] + 0.1 * near(120, seed=4)
    found = bitext(a, b, min_score=1.06)
    right = sum(order[pair.second] == pair.first for pair in found)
    assert right > 110
    assert right >= 0.95 * len(found)


def test_few_and_bad() -> None:
    assert len(bitext(near(3), [])) == 0
    assert len(bitext(near(1), near(1))) == 1
    with pytest.raises(InputError, match="one model"):
        bitext(near(3), near(3, width=8))
    with pytest.raises(InputError, match="num_neighbours"):
        bitext(near(3), near(3), num_neighbours=0)
