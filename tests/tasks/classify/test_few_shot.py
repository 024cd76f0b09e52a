"""Pairs of a few labelled texts, and a copy of a model that learns from them."""

from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.tasks.classify.few_shot import copy_of, fine_tune, make_pairs
from munjang.training.config import TrainConfig

TEXTS = ["a quick fox", "quick brown dogs", "lazy old soup", "soup in winter", "music from a radio", "old music"]
TARGETS = np.eye(3, dtype=bool)[[0, 0, 1, 1, 2, 2]]


def test_partners_share_a_label_or_none() -> None:
    pairs = make_pairs(TARGETS, 3, seed=1)
    shares = (TARGETS[pairs.first_P] & TARGETS[pairs.second_P]).any(1)
    assert (shares == pairs.scores_P.astype(bool)).all()
    assert (pairs.first_P != pairs.second_P).all()
    assert np.bincount(pairs.first_P).tolist() == [6] * 6
    assert pairs.scores_P.mean() == 0.5


def test_partners_are_drawn_once_before_twice() -> None:
    pairs = make_pairs(np.eye(2, dtype=bool)[[0, 0, 0, 1, 1, 1, 1]], 4)
    for row in range(3):
        others = pairs.second_P[(pairs.first_P == row) & (pairs.scores_P == 0)]
        assert sorted(others) == [3, 4, 5, 6]
        partners = pairs.second_P[(pairs.first_P == row) & (pairs.scores_P == 1)]
        assert sorted(np.bincount(partners, minlength=3)[:3]) == [0, 2, 2]


def test_several_labels() -> None:
    pairs = make_pairs(np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]], bool), 2)
    found = {(int(a), int(b)): s for a, b, s in zip(pairs.first_P, pairs.second_P, pairs.scores_P, strict=True)}
    assert found == {(0, 1): 1, (1, 0): 1, (0, 2): 0, (2, 0): 0, (1, 2): 1, (2, 1): 1}


def test_learning_brings_labels_together_and_leaves_the_model_alone(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, device="cpu", threads=1)
    before = model.encode(TEXTS)
    config = TrainConfig(epochs=6, learning_rate=1e-3, quiet=True, device="cpu", dropout=0.0)
    learned = fine_tune(model, TEXTS, TARGETS, config, 2)
    np.testing.assert_array_equal(model.encode(TEXTS), before)
    assert learned.fingerprint != model.fingerprint

    def gap(vectors: np.ndarray) -> float:
        cosines = vectors @ vectors.T
        same = (TARGETS @ TARGETS.T) & ~np.eye(6, dtype=bool)
        return float(cosines[same].mean() - cosines[~(TARGETS @ TARGETS.T)].mean())

    assert gap(learned.encode(TEXTS)) > gap(before) + 0.2


def test_a_copy_has_the_settings(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, device="cpu", threads=1)
    model.prompts, model.default_prompt_name, model.max_length = {"x": "radio "}, "x", 20
    made = copy_of(model)
    assert made.max_length == 20
    np.testing.assert_allclose(made.encode(TEXTS), model.encode(TEXTS), atol=2e-6)
    made.max_length = 10
    assert model.max_length == 20


def test_nothing_to_compare(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, device="cpu", threads=1)
    with pytest.raises(InputError, match="no two of these share a label; give more, or use frozen"):
        fine_tune(model, TEXTS[:3], np.eye(3, dtype=bool), TrainConfig(quiet=True), 2)
