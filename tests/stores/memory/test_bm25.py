import math
from random import Random

import numpy as np
import pytest

from munjang.stores.memory.bm25 import K1, B, Postings


def naive(query: str, texts: list[str]) -> list[float]:
    """The formula of the module, one text at a time."""
    words = [text.split() for text in texts]
    mean = sum(map(len, words)) / len(words)
    scores = []
    for row in words:
        score = 0.0
        for word in query.split():
            n = sum(word in each for each in words)
            tf = row.count(word)
            idf = math.log(1 + (len(words) - n + 0.5) / (n + 0.5))
            score += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(row) / mean))
        scores.append(score)
    return scores


def test_by_hand() -> None:
    """Two rows of two words each: idf = ln 2, tf = 1, length = mean, so ln 2 * 2.2 / 2.2."""
    postings = Postings()
    postings.append(["a b", "c d"])
    assert postings.scores("a", np.ones(2, bool)).tolist() == [pytest.approx(math.log(2)), 0]


def test_agrees_with_naive() -> None:
    random = Random(0)
    texts = [" ".join(random.choices("abcdefgh", k=random.randint(0, 9))) for _ in range(60)]
    postings = Postings()
    postings.append(texts[:20])
    postings.append(texts[20:])
    for query in ("a", "a b b", "h z", "", "z"):
        np.testing.assert_allclose(postings.scores(query, np.ones(60, bool)), naive(query, texts), rtol=1e-12)


def test_rows_that_are_gone_count_for_nothing() -> None:
    texts = ["a b c", "a a", "b c d e", "a"]
    postings = Postings()
    postings.append(texts)
    scores = postings.scores("a c", np.array([True, False, True, True]))
    left = naive("a c", [texts[0], texts[2], texts[3]])
    np.testing.assert_allclose(scores[[0, 2, 3]], left, rtol=1e-12)
    assert scores[1] == 0
