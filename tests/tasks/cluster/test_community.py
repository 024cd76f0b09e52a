"""Communities: those of sentence-transformers, to the place."""

import numpy as np
import pytest
from sentence_transformers import util

from munjang.errors import InputError
from munjang.tasks.cluster.community import communities
from tests.tasks.paraphrases.test_mining import near


@pytest.mark.parametrize(("threshold", "min_size"), [(0.75, 3), (0.6, 2), (0.9, 1), (0.4, 20), (0.3, 5), (-1.0, 10)])
def test_the_same_as_the_incumbent(threshold: float, min_size: int) -> None:
    vectors = near(1300)
    found = communities(vectors, None, threshold, min_size)
    expected = util.community_detection(vectors, threshold=threshold, min_community_size=min_size)
    assert found == expected  # no two scores of a row are equal here


def test_equal_vectors_and_the_zero_vector() -> None:
    vectors = np.repeat(near(3, 8), 5, axis=0)
    vectors[7] = 0
    found = communities(vectors, threshold=0.99, min_size=4)
    assert sorted(map(sorted, found)) == [[0, 1, 2, 3, 4], [5, 6, 8, 9], [10, 11, 12, 13, 14]]


def test_cells_find_the_same_heaps() -> None:
    vectors = near(1200) * 0.2 + np.repeat(near(12, seed=3) * 3, 100, axis=0)
    assert sorted(map(sorted, communities(vectors, None, 0.7, 5, is_exact=False))) == sorted(
        map(sorted, communities(vectors, None, 0.7, 5))
    )


def test_few_texts() -> None:
    assert communities([]) == []
    assert communities(near(1), min_size=1) == [[0]]
    assert communities(near(5), min_size=10) == []
    with pytest.raises(InputError, match="at least 1"):
        communities(near(5), min_size=0)
