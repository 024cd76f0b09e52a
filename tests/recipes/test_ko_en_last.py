"""The last round of ko-en-small: who judges Korean pairs, and which passages are told apart."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from munjang import BiEncoder, CrossEncoder
from munjang.data.examples import Examples
from recipes.ko_en_small.judges import JUDGED, pairs_of, together
from recipes.ko_en_small.last import by_topic


def test_neighbours_follow_each_other() -> None:
    """Eight heaps of 24 rows in a line, mixed up: every batch is of one heap."""
    random = np.random.default_rng(1)
    heap_of = random.permutation(np.repeat(np.arange(8), 24))
    line = random.normal(size=16)
    vectors = (heap_of[:, None] * line + 0.05 * random.normal(size=(192, 16))).astype(np.float32)
    order = by_topic(vectors, 24)
    assert sorted(order) == list(range(192))
    assert all(len(set(heap_of[order[start : start + 24]])) == 1 for start in range(0, 192, 24))


def test_equal_rows_come_to_an_end() -> None:
    assert sorted(by_topic(np.ones((100, 4), np.float32), 8)) == list(range(100))
    assert by_topic(np.zeros((0, 4), np.float32), 8) == []


def test_judges_together(make: Callable[..., Path]) -> None:
    encoder = BiEncoder.load(make("bert"), "cpu")
    crosses = [CrossEncoder.load(make("bert", kind="cross", num_labels=1, seed=seed), "cpu") for seed in (1, 2)]
    pairs = Examples("pairs", (["a cat sleeps", "a dog runs", "고양이"], ["a cat", "the dog", "a cat sleeps"]))
    found = together(encoder, crosses, pairs)
    asked = list(zip(*pairs.texts, strict=True))
    judged = np.mean([cross.predict(asked, activation="Sigmoid") for cross in crosses], axis=0)
    assert np.abs(found["cross-encoders"] - judged).max() < 1e-6

    def ranks(values: np.ndarray) -> np.ndarray:
        return (values - values.mean()) / values.std()

    expected = JUDGED * ranks(judged) + (1 - JUDGED) * ranks(found["encoder"])
    assert np.abs(found["together"] - expected).max() < 1e-4


def test_pairs_are_of_different_texts(make: Callable[..., Path]) -> None:
    encoder = BiEncoder.load(make("bert"), "cpu")
    texts = [f"sentence {number} of the day" for number in range(20)]
    found = pairs_of(encoder, texts, seed=1)
    pairs = {frozenset(pair) for pair in zip(*found.texts, strict=True)}
    assert len(pairs) == len(found)  # none twice, in either order
    assert all(len(pair) == 2 for pair in pairs)
    assert set(texts) == set().union(*pairs)
