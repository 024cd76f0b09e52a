"""Hard negatives: what a naive search over the full matrix finds, rule by rule."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.training.negatives import mine_negatives
from tests.texts import mixed

TEXTS = list(dict.fromkeys(mixed(80, longest=12)))
ANCHORS = [*TEXTS[:20], TEXTS[0], TEXTS[1]]  # two anchors have two positives
POSITIVES = TEXTS[20:42]
CORPUS = [*TEXTS[42:], *TEXTS[:5], *POSITIVES[:6], TEXTS[50]]  # with anchors, positives and one text twice
EXAMPLES = Examples("made up", (ANCHORS, POSITIVES), ("anchor", "positive"))


@pytest.fixture(scope="module")
def model(make: Callable[..., Path]) -> BiEncoder:
    prompts = '{"query": "fox: ", "document": "dog: "}'
    return BiEncoder.load(make("bert", prompts=prompts), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def scorer(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="classifier", num_labels=1), device="cpu", dtype="float32")


def naive(
    model: BiEncoder,
    corpus: list[str],
    allowed: Callable[[int, float, float, str, str, str], bool] = lambda *_: True,
    count: int = 3,
    rank_to: int = 100,
) -> list[list[str]]:
    """For each row the nearest candidates; `allowed(rank, score, score of the positive, anchor, positive, text)`."""
    found = []
    documents = list(dict.fromkeys([*corpus, *POSITIVES]))
    queries = dict(zip(ANCHORS, model.encode_query(ANCHORS), strict=True))
    vectors = dict(zip(documents, model.encode_document(documents), strict=True))
    for anchor, positive in zip(ANCHORS, POSITIVES, strict=True):
        known = {p for a, p in zip(ANCHORS, POSITIVES, strict=True) if a == anchor} | {anchor}
        texts = [text for text in dict.fromkeys(corpus) if text not in known]
        scores = model.similarity(queries[anchor][None], np.stack([vectors[text] for text in [*texts, positive]]))[0]
        order = np.argsort(-scores[:-1])[:rank_to]
        ranked = [
            texts[at]
            for rank, at in enumerate(order)
            if allowed(rank, float(scores[at]), float(scores[-1]), anchor, positive, texts[at])
        ]
        found.append(ranked[:count])
    return found


def per_row(mined: Examples, count: int = 3) -> list[list[str]]:
    """The negatives of each row of EXAMPLES, from triplets."""
    found: dict[tuple[str, str], list[str]] = {pair: [] for pair in zip(ANCHORS, POSITIVES, strict=True)}
    for anchor, positive, negative in zip(*mined.texts, strict=True):
        found[anchor, positive].append(negative)
    return list(found.values())


@pytest.mark.parametrize("corpus", [None, CORPUS])
def test_the_nearest(model: BiEncoder, corpus: list[str] | None) -> None:
    mined = mine_negatives(model, EXAMPLES, corpus)
    assert per_row(mined.examples) == naive(model, POSITIVES if corpus is None else corpus)
    assert mined.examples.columns == ("anchor", "positive", "negative")
    assert (mined.statistics.num_rows, mined.statistics.num_short, mined.statistics.num_none) == (22, 0, 0)
    assert mined.statistics.num_negatives == 66
    positive = model.similarity_pairwise(model.encode_query(ANCHORS), model.encode_document(POSITIVES))
    assert mined.statistics.positive_mean == pytest.approx(positive.mean(), abs=1e-5)
    anchors, _, negatives = mined.examples.texts
    negative = model.similarity_pairwise(model.encode_query(anchors), model.encode_document(negatives))
    assert mined.statistics.negative_mean == pytest.approx(negative.mean(), abs=1e-5)


def quantile(model: BiEncoder, share: float) -> float:
    """Of all scores; the tiny model's weights are drawn for a vocabulary that differs from run to run."""
    scores = np.unique(model.similarity(model.encode_query(ANCHORS), model.encode_document(CORPUS)).round(4))
    at = int(share * len(scores))
    return float(scores[at : at + 2].mean())  # between two: the last bits of a score decide nothing


@pytest.mark.parametrize(
    ("rule", "value", "allowed"),
    [
        ("rank_from", 4, lambda value, rank, *_: rank >= value),
        ("margin", 0.1, lambda value, rank, score, positive, *_: score <= positive - value),
        ("relative_margin", 0.2, lambda value, rank, score, positive, *_: score <= positive - value * abs(positive)),
        ("max_score", "90 %", lambda value, rank, score, *_: score <= value),
        ("min_score", "95 %", lambda value, rank, score, *_: score >= value),
    ],
)
def test_each_rule(model: BiEncoder, rule: str, value: Any, allowed: Callable[..., bool]) -> None:
    value = quantile(model, float(value[:2]) / 100) if isinstance(value, str) else value
    mined = mine_negatives(model, EXAMPLES, CORPUS, **{rule: value})
    allowed = partial(allowed, value)
    wanted = naive(model, CORPUS, allowed)
    assert per_row(mined.examples) == wanted != naive(model, CORPUS)
    assert mined.statistics.num_short == sum(len(row) < 3 for row in wanted)
    assert mined.statistics.num_none == sum(not row for row in wanted)
    kept = naive(model, CORPUS, allowed, count=1000)
    total = sum(map(len, naive(model, CORPUS, count=1000)))
    assert mined.statistics.dropped == {rule: total - sum(map(len, kept))}


def test_rank_to(model: BiEncoder) -> None:
    mined = mine_negatives(model, EXAMPLES, CORPUS, rank_from=2, rank_to=4, num_negatives=2)
    assert per_row(mined.examples) == naive(model, CORPUS, lambda rank, *_: 2 <= rank < 4)


@pytest.mark.parametrize("margin", [None, 0.05])
def test_the_cross_encoder_has_a_veto(model: BiEncoder, scorer: CrossEncoder, margin: float | None) -> None:
    mined = mine_negatives(model, EXAMPLES, CORPUS, scorer=scorer, scorer_margin=margin)
    everything = [(anchor, text) for anchor in set(ANCHORS) for text in {*CORPUS, *POSITIVES}]
    scores = dict(zip(everything, scorer.predict(everything), strict=True))

    def allowed(rank: int, score: float, positive: float, anchor: str, answer: str, text: str) -> bool:
        return bool(scores[anchor, text] <= scores[anchor, answer] - (margin or 0))

    assert per_row(mined.examples) == naive(model, CORPUS, allowed)
    pairs = 22 * (1 + len(set(CORPUS)))
    assert 0 < mined.statistics.dropped["scorer"] < mined.statistics.num_scored < pairs  # not all of them are read


def test_random_picks(model: BiEncoder) -> None:
    first, again, other = (
        mine_negatives(model, EXAMPLES, CORPUS, pick="random", rank_to=10, seed=seed).examples for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    for row, nearest in zip(per_row(first), naive(model, CORPUS, count=10), strict=True):
        assert len(set(row)) == 3
        assert set(row) <= set(nearest)
        assert row == [text for text in nearest if text in row]  # best first


def test_layouts(model: BiEncoder) -> None:
    options = {"min_score": quantile(model, 0.95), "num_negatives": 2}
    rows = per_row(mine_negatives(model, EXAMPLES, CORPUS, **options).examples)
    full = [(a, p, *row) for a, p, row in zip(ANCHORS, POSITIVES, rows, strict=True) if len(row) == 2]
    assert 0 < len(full) < 22
    columns = mine_negatives(model, EXAMPLES, CORPUS, **options, layout="columns").examples
    assert columns.columns == ("anchor", "positive", "negative_1", "negative_2")
    assert list(zip(*columns.texts, strict=True)) == full
    labelled = mine_negatives(model, EXAMPLES, CORPUS, **options, layout="labelled").examples
    found = list(zip(*labelled.texts, labelled.labels.tolist(), strict=True))
    wanted = {(a, p, 1) for a, p in zip(ANCHORS, POSITIVES, strict=True)}
    wanted |= {(a, negative, 0) for a, row in zip(ANCHORS, rows, strict=True) for negative in row}
    assert labelled.columns == ("sentence1", "sentence2")
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_none_are_left(model: BiEncoder) -> None:
    for layout, width in (("triplet", 3), ("columns", 5)):
        mined = mine_negatives(model, EXAMPLES, CORPUS, max_score=-2.0, layout=layout)
        assert (len(mined.examples), len(mined.examples.texts), mined.statistics.num_none) == (0, width, 22)
    only = mine_negatives(model, Examples("x", (["a"], ["b"])), ["a", "b"])
    assert (len(only.examples), only.statistics.num_none) == (0, 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"num_negatives": 0}, "num_negatives must be at least 1"),
        ({"rank_from": 5, "rank_to": 5}, "rank_from 5 must be below rank_to 5"),
        ({"rank_to": 2}, "3 negatives can't come from 2 ranks"),
        ({"relative_margin": 5.0}, "0 to 1, not 5.0"),
        ({"pick": "best"}, "Unknown pick 'best'; choose from random, top"),
        ({"layout": "pairs"}, "Unknown layout 'pairs'"),
        ({"scorer_margin": 0.1}, "scorer_margin needs a scorer"),
        ({"corpus": []}, "The corpus is empty"),
    ],
)
def test_what_is_refused(model: BiEncoder, options: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        mine_negatives(model, EXAMPLES, **options)


def test_other_examples_are_refused(model: BiEncoder, make: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="has 3 texts a row"):
        mine_negatives(model, Examples("x", (["a"], ["b"], ["c"])))
    with pytest.raises(InputError, match="has labels or scores"):
        mine_negatives(model, Examples("x", (["a"], ["b"]), labels=np.array([1])))
    with pytest.raises(InputError, match="has no rows"):
        mine_negatives(model, Examples("x", ([], [])))
    three = CrossEncoder.load(make("bert", kind="classifier", num_labels=3), device="cpu")
    with pytest.raises(InputError, match="this cross-encoder has 3 labels"):
        mine_negatives(model, EXAMPLES, scorer=three)
