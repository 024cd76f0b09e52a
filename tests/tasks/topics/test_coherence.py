"""NPMI by hand."""

import math

import pytest

from munjang.tasks.topics.coherence import coherence

DOCUMENTS = ["a b", "a B!", "a c", "d"]


def test_pairs_by_hand() -> None:
    # p(a) = 3/4, p(b) = 2/4, both 2/4
    assert coherence([["a", "b"]], DOCUMENTS) == pytest.approx(math.log(0.5 / 0.375) / -math.log(0.5))
    assert coherence([["a", "d"]], DOCUMENTS) == -1
    assert coherence([["a", "b"]], ["a b"]) == 1


def test_topics_are_averaged_and_short_ones_left_out() -> None:
    both = coherence([["a", "b"], ["a", "d"], ["a"], []], DOCUMENTS)
    assert both == pytest.approx((coherence([["a", "b"]], DOCUMENTS) - 1) / 2)
    assert coherence([["a"]], DOCUMENTS) == 0


def test_only_the_first_words_count() -> None:
    assert coherence([["a", "b", "d"]], DOCUMENTS, top=2) == coherence([["a", "b"]], DOCUMENTS)
