"""Which way texts take: few by their words, many by numpy's table; the same ids on either."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from munjang.text.bodies import LARGE, SMALL, Bodies
from munjang.text.lookup import encode_whole
from tests.models import make_tokenizer
from tests.texts import mixed

SOME = [*mixed(5, longest=12), "the fox", ""]


@pytest.fixture(params=["wordpiece", "unigram", "bytelevel"])
def rust(request: pytest.FixtureRequest) -> Tokenizer:
    return make_tokenizer(request.param)


def assert_same(bodies: Bodies, texts: list[str]) -> None:
    flat, lengths = bodies(texts)
    expected_flat, expected_lengths = encode_whole(bodies.rust, texts)
    assert np.array_equal(flat, expected_flat)
    assert np.array_equal(lengths, expected_lengths)
    assert flat.dtype == np.int32
    assert flat.flags.writeable


def num_known(bodies: Bodies) -> int:
    assert bodies.words is not None
    return len(bodies.words.known)


def at_least(size: int) -> list[str]:
    return SOME * (size // sum(map(len, SOME)) + 1)


def test_a_few_texts_go_by_their_words(rust: Tokenizer) -> None:
    bodies = Bodies(rust)
    assert bodies.lookup is not None
    for _ in range(40):
        assert_same(bodies, SOME)
    assert bodies.lookup.table.size == 0
    assert num_known(bodies) > 5


def test_many_texts_go_by_the_table(rust: Tokenizer) -> None:
    bodies = Bodies(rust)
    assert bodies.lookup is not None
    assert_same(bodies, at_least(SMALL))
    assert bodies.lookup.table.size > 5
    assert num_known(bodies) == 0


def test_a_table_that_knows_the_words_is_used_sooner(rust: Tokenizer) -> None:
    bodies = Bodies(rust)
    for _ in range(10):
        assert_same(bodies, at_least(SMALL))
    assert_same(bodies, at_least(LARGE))
    assert num_known(bodies) == 0
    for _ in range(40):
        assert_same(bodies, SOME)
    assert num_known(bodies) > 5


def test_empty_texts_alone(rust: Tokenizer) -> None:
    bodies = Bodies(rust)
    for texts in (["", ""], [""], [], [" "], ["  ", " a"]):
        assert_same(bodies, texts)
