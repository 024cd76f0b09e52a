"""Corruption of texts: how much of it, what is spared, and that it depends on nothing but the generator."""

import numpy as np
import pytest

from munjang.objectives.base import IGNORED
from munjang.training.corruption import CORRUPTIONS, Corrupted, delete, mask
from munjang.types import Ids, Ints

CLS, SEP, MASK, VOCAB = 2, 3, 4, 1000


def texts(count: int, longest: int, seed: int = 0) -> tuple[Ids, Ints]:
    """CLS, ordinary ids, SEP; at least one ordinary id."""
    random = np.random.default_rng(seed)
    bodies = [random.integers(10, VOCAB, random.integers(1, longest + 1)) for _ in range(count)]
    rows = [np.concatenate([[CLS], body, [SEP]]) for body in bodies]
    return np.concatenate(rows).astype(np.int32), np.array([len(row) for row in rows], np.int64)


def corrupt(name: str, ids: Ids, lengths: Ints, seed: int = 1) -> Corrupted:
    is_special = np.isin(ids, [CLS, SEP])
    return CORRUPTIONS[name](ids, lengths, is_special, VOCAB, MASK, np.random.default_rng(seed))


def split(ids: Ids, lengths: Ints) -> list[list[int]]:
    return [part.tolist() for part in np.split(ids, np.cumsum(lengths)[:-1])]


def test_three_of_five_tokens_are_deleted() -> None:
    ids, lengths = texts(2000, 60)
    found = corrupt("delete", ids, lengths)
    kept, before = (found.lengths - 2).sum(), (lengths - 2).sum()
    assert kept / before == pytest.approx(0.4, abs=0.01)
    assert found.ids.dtype == np.int32


def test_what_deletion_leaves() -> None:
    """Of every text its ends, at least one token, and the rest in order; all of it is to be predicted."""
    ids, lengths = texts(500, 4)
    found = corrupt("delete", ids, lengths)
    for before, after in zip(split(ids, lengths), split(found.ids, found.lengths), strict=True):
        assert (after[0], after[-1]) == (CLS, SEP)
        assert len(after) >= 3
        rest = iter(before)
        assert all(token in rest for token in after)  # a subsequence
    assert np.array_equal(found.targets, ids)
    assert np.array_equal(found.target_lengths, lengths)
    assert found.targets.dtype == np.int64


def test_deletion_of_texts_without_words() -> None:
    ids, lengths = np.array([CLS, SEP, CLS, 50, SEP], np.int32), np.array([2, 0, 3])
    found = corrupt("delete", ids, lengths)
    assert found.lengths.tolist() == [2, 0, 3]
    assert found.ids.tolist() == ids.tolist()


def test_shares_of_masking() -> None:
    """15 % of the words: 80 % of them the mask, 10 % another word, 10 % as they were."""
    ids, lengths = texts(4000, 40)
    found = corrupt("mask", ids, lengths)
    words = ~np.isin(ids, [CLS, SEP])
    chosen = found.targets != IGNORED
    assert chosen.sum() / words.sum() == pytest.approx(0.15, abs=0.005)
    is_mask, is_same = found.ids == MASK, found.ids == ids
    assert (is_mask & chosen).sum() / chosen.sum() == pytest.approx(0.8, abs=0.01)
    assert (is_same & chosen).sum() / chosen.sum() == pytest.approx(0.1, abs=0.01)
    assert not (chosen & ~words).any()
    assert is_same[~chosen].all()
    assert np.array_equal(found.targets[chosen], ids[chosen])
    assert np.array_equal(found.lengths, lengths)
    strange = found.ids[chosen & ~is_mask & ~is_same]
    assert 0 <= strange.min() < 50  # from the whole vocabulary
    assert 950 < strange.max() < VOCAB


def test_a_batch_always_has_something_to_predict() -> None:
    """15 % of two words are often none, and the mean over nothing is no loss."""
    ids, lengths = np.array([CLS, 50, 60, SEP], np.int32), np.array([4])
    counts = [(corrupt("mask", ids, lengths, seed).targets != IGNORED).sum() for seed in range(200)]
    assert min(counts) == 1
    assert np.mean(np.array(counts) == 1) > 0.7
    both = {tuple((corrupt("mask", ids, lengths, seed).targets != IGNORED).tolist()) for seed in range(200)}
    assert len(both) == 3  # the first, the second, or both
    nothing = corrupt("mask", ids[[0, 3]], np.array([2]))
    assert (nothing.targets == IGNORED).all()


@pytest.mark.parametrize("function", [delete, mask])
def test_the_same_from_the_same_state(function: object) -> None:
    name = next(key for key, value in CORRUPTIONS.items() if value is function)
    ids, lengths = texts(30, 20)
    once, again, other = (corrupt(name, ids, lengths, seed) for seed in (1, 1, 2))
    assert np.array_equal(once.ids, again.ids)
    assert once.ids.tolist() != other.ids.tolist()
