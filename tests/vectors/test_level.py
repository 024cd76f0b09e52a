"""Levelling: what all vectors share is taken off every cosine, and nothing else changes."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.types import Floats
from munjang.vectors.level import level
from munjang.vectors.similarity import cosine


def with_common_part(num_texts: int, common: float) -> Floats:
    """Return unit vectors whose products in the first dimension are all `common`."""
    own = np.random.default_rng(1).normal(size=(num_texts, 16))
    own[:, 0] = 0
    own *= np.sqrt(1 - common) / np.linalg.norm(own, axis=1, keepdims=True)
    own[:, 0] = np.sqrt(common)
    return own.astype(np.float32)


def test_a_common_part_is_taken_off_every_cosine() -> None:
    vectors = with_common_part(400, 0.4)
    projection, middle = level(vectors)
    assert middle == pytest.approx(0.4, abs=1e-3)
    made = cosine(vectors @ projection, vectors @ projection)
    np.testing.assert_allclose(made, (vectors @ vectors.T - 0.4) / 0.6, atol=2e-3)
    np.testing.assert_allclose(projection @ projection, projection, atol=1e-6)


def test_lengths_and_empty_texts_do_not_count() -> None:
    vectors = with_common_part(400, 0.4)
    longer = np.concatenate([vectors * np.linspace(0.5, 3, 400, dtype=np.float32)[:, None], np.zeros((9, 16), "f")])
    np.testing.assert_allclose(level(longer)[0], level(vectors)[0], atol=1e-5)


def test_vectors_around_the_origin_stay_as_they_are() -> None:
    half = np.random.default_rng(2).normal(size=(300, 8)).astype(np.float32)
    vectors = np.concatenate([half, -half])
    projection, middle = level(vectors)
    assert middle == 0
    np.testing.assert_array_equal(projection, np.eye(8))
    again, none = level(with_common_part(400, 0.4) @ level(with_common_part(400, 0.4))[0])
    assert none == 0
    np.testing.assert_array_equal(again, np.eye(16))


def test_too_few_texts_are_refused() -> None:
    with pytest.raises(InputError, match=r"at least 16, .* got 15"):
        level(with_common_part(15, 0.4))
