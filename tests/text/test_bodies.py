"""Small calls: straight to `tokenizers` while their words are new, looked up once they are known."""

import numpy as np
import pytest
from tokenizers import Tokenizer

from munjang.text.bodies import SMALL, TURNS, Bodies
from munjang.text.lookup import encode_whole
from tests.models import make_tokenizer
from tests.texts import mixed

SOME = [*mixed(5, longest=12), "the fox", ""]


@pytest.fixture(params=["wordpiece", "unigram", "bytelevel"])
def rust(request: pytest.FixtureRequest) -> Tokenizer:
    return make_tokenizer(request.param)


def num_known(bodies: Bodies) -> int:
    assert bodies.lookup is not None
    return bodies.lookup.table.size


def assert_same(bodies: Bodies, texts: list[str]) -> None:
    flat, lengths = bodies(texts)
    expected_flat, expected_lengths = encode_whole(bodies.rust, texts)
    assert np.array_equal(flat, expected_flat)
    assert np.array_equal(lengths, expected_lengths)


def test_of_small_calls_with_new_words_a_few_are_learned(rust: Tokenizer) -> None:
    bodies = Bodies(rust)
    for _ in range(TURNS - 1):
        assert_same(bodies, SOME)
    assert num_known(bodies) == 0
    assert_same(bodies, SOME)
    assert num_known(bodies) > 5


def test_a_small_call_whose_words_are_known_is_looked_up(rust: Tokenizer) -> None:
    bodies = Bodies(rust)
    assert bodies.lookup is not None
    for _ in range(10 * TURNS):
        assert_same(bodies, SOME)
    turn, share = bodies.turn, bodies.lookup.share_new
    assert share < 0.01
    assert_same(bodies, SOME)
    assert bodies.turn == turn  # nobody asked whose turn it is
    assert bodies.lookup.share_new == share / 2


def test_a_large_call_is_learned_at_once(rust: Tokenizer) -> None:
    bodies = Bodies(rust)
    texts = SOME * (SMALL // sum(map(len, SOME)) + 1)
    assert_same(bodies, texts)
    assert num_known(bodies) > 5
