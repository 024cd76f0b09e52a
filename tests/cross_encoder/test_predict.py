"""Pairs in, scores out: kinds of pairs, batches, hostile and long ones, and what is refused."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang import CrossEncoder
from munjang.cross_encoder import split_pairs
from munjang.errors import InputError, TruncationWarning
from tests.cross_encoder.given import PAIRS
from tests.seen import tokens_seen
from tests.texts import HOSTILE


def test_shapes(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    assert scorer.predict(PAIRS).shape == (20,)
    assert labels.predict(PAIRS).shape == (20, 3)
    assert scorer.predict(PAIRS).dtype == labels.predict(PAIRS).dtype == np.float32
    assert np.ndim(scorer.predict(("a", "b"))) == 0
    assert labels.predict(["a", "b"]).shape == (3,)
    assert scorer.predict([("a", "b")]).shape == (1,)
    assert scorer.predict([]).shape == (0,)
    assert labels.predict([]).shape == (0, 3)
    assert (scorer.num_labels, labels.num_labels) == (1, 3)


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        np.array(PAIRS),
        np.array(PAIRS, object),
        iter(PAIRS),
        zip(*zip(*PAIRS, strict=True), strict=True),
    ],
    ids=["list", "tuple", "lists", "array", "objects", "iterator", "zip"],
)
def test_kinds_of_pairs(scorer: CrossEncoder, given: Any) -> None:
    np.testing.assert_allclose(scorer.predict(given), scorer.predict(PAIRS), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "list of .text, text., not str"),
        (None, "list of .text, text., not NoneType"),
        (5, "not int"),
        ({"a": "b"}, "not dict"),
        ({("a", "b")}, "not set"),
        (["a", "b", "c"], "Pair 0 should be two texts, not 'a'"),
        ([("a", "b"), ("a",)], r"Pair 1 should be two texts, not \('a',\)"),
        ([("a", "b", "c")], "Pair 0 should be two texts"),
        ([("a", "b"), "ab"], "Pair 1 should be two texts, not 'ab'"),
        ([("a", None)], "Item 0 of the second texts is missing"),
        ([("a", "b"), (b"a", "b")], "Item 1 of the first texts is bytes"),
        ([("a", ["b"])], "Item 0 of the second texts is list"),
        (np.zeros((2, 2)), "Item 0 of the first texts is float"),
    ],
    ids=lambda given: repr(given)[:20],
)
def test_refused_by_name(scorer: CrossEncoder, given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        scorer.predict(given)


def test_split_pairs() -> None:
    assert split_pairs(("a", "b")) == (["a"], ["b"], True)
    assert split_pairs([("a", "b"), ["c", "d"]]) == (["a", "c"], ["b", "d"], False)
    assert split_pairs([]) == ([], [], False)


def test_a_score_is_the_same_alone_and_in_any_batch(scorer: CrossEncoder) -> None:
    whole = scorer.predict(PAIRS, activation="Identity")
    alone = np.array([scorer.predict(pair, activation="Identity") for pair in PAIRS])
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(alone, whole, atol=2e-5 * np.abs(whole).max())
    shuffled = scorer.predict([PAIRS[row] for row in order], activation="Identity", batch_tokens=50)
    np.testing.assert_allclose(shuffled, whole[order], atol=2e-5 * np.abs(whole).max())


def test_the_two_sides_differ(scorer: CrossEncoder) -> None:
    turned = [(b, a) for a, b in PAIRS]
    assert np.abs(scorer.predict(PAIRS) - scorer.predict(turned)).max() > 1e-3


def test_equal_pairs_are_computed_once(scorer: CrossEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tokens_seen(scorer.network.encoder, monkeypatch)
    found = scorer.predict([*PAIRS, *PAIRS[::-1], *PAIRS])
    tokens = scorer.tokenizer.pairs([a for a, _ in PAIRS], [b for _, b in PAIRS])
    assert sum(seen) == tokens.lengths.sum()  # no padding, no pair twice
    np.testing.assert_array_equal(found[:20], found[20:40][::-1])
    np.testing.assert_array_equal(found[:20], found[40:])


def test_every_text_is_tokenized_once(scorer: CrossEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    bodies = scorer.tokenizer.bodies
    monkeypatch.setattr(scorer.tokenizer, "bodies", lambda texts: (seen.extend(texts), bodies(texts))[1])
    scorer.rank("fox", ["one", "two", "fox"])
    assert sorted(seen) == ["fox", "one", "two"]


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
def test_hostile_pairs(make: Callable[..., Path], family: str) -> None:
    scorer = CrossEncoder.load(make(family, kind="classifier", num_labels=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        scores = scorer.predict(list(zip(HOSTILE, HOSTILE[::-1], strict=True)))
    assert np.isfinite(scores).all()
    assert scorer.predict(("", "")) == pytest.approx(scorer.predict([("", ""), ("a", "b")])[0], abs=1e-5)


def test_long_pairs(scorer: CrossEncoder) -> None:
    long = "word " * 200_000
    with pytest.warns(TruncationWarning, match="3 of 4 pairs are longer than 100 tokens") as caught:
        scores = scorer.predict([(long, "a"), ("a", "b"), ("a", long), (long, "a")])
    assert caught[0].filename == __file__
    assert np.isfinite(scores).all()
    assert scores[0] == scores[3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scorer.predict(PAIRS[:3])


def test_max_length(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
    scorer.max_length = 8
    with pytest.warns(TruncationWarning, match="longer than 8 tokens"):
        scorer.predict(("the quick brown fox", "jumps over lazy dogs"))
    for tokens in (3, 129, None):
        with pytest.raises(InputError, match="max_length"):
            scorer.max_length = tokens
