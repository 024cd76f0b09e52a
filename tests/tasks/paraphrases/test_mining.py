"""The most similar pairs: against all scores, in one set and between two, with ties and crowds."""

import numpy as np
import pytest
import torch

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.tasks.paraphrases import bounds
from munjang.tasks.paraphrases import mining as module
from munjang.tasks.paraphrases.best import Best
from munjang.tasks.paraphrases.mining import Pair, mine, paraphrases
from munjang.types import Floats
from munjang.vectors.similarity import unit


def near(count: int, width: int = 48, seed: int = 0) -> Floats:
    """Vectors in heaps, as texts are."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(count // 8 + 1, width))
    scales = np.linspace(2, 0.2, width)  # as in a model's vectors, some directions hold more than others
    return ((centres[random.integers(0, len(centres), count)] + random.normal(size=(count, width))) * scales).astype(
        np.float32
    )


def all_pairs(a: Floats, b: Floats | None) -> list[Pair]:
    scores = unit(a) @ unit(a if b is None else b).T
    rows, columns = np.triu_indices(len(a), 1) if b is None else np.indices(scores.shape).reshape(2, -1)
    found = zip(scores[rows, columns].tolist(), rows.tolist(), columns.tolist(), strict=True)
    return sorted((Pair(*each) for each in found), key=lambda pair: -pair.score)


@pytest.mark.parametrize("is_two", [False, True])
@pytest.mark.parametrize("max_pairs", [1, 50, 3000, 10**6])
def test_the_same_pairs_as_by_all_scores(is_two: bool, max_pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_SCORES_FOR_GUESS", 1000)  # guess the floor here too, and use bounds
    monkeypatch.setattr(bounds, "NUM_SAMPLE_ROWS", 64)
    monkeypatch.setattr(bounds, "MIN_SCORES_FOR_BOUNDS", 0)
    a, b = near(300), near(220, seed=1) if is_two else None
    expected = all_pairs(a, b)[:max_pairs]
    found = paraphrases(a, b, max_pairs=max_pairs, device="cpu")
    assert len(found) == len(expected)
    assert np.allclose(found.scores_P, [pair.score for pair in expected], atol=2e-6)
    assert {pair[1:] for pair in found} == {pair[1:] for pair in expected}  # no ties here but by rounding


def test_min_score_is_a_limit() -> None:
    a = near(300)
    found = paraphrases(a, min_score=0.8, device="cpu")
    assert {pair[1:] for pair in found} == {pair[1:] for pair in all_pairs(a, None) if pair.score >= 0.8}


@pytest.mark.parametrize("small", [100, 10**9])
@pytest.mark.parametrize("max_neighbours", [1, 5])
def test_a_pair_counts_if_it_is_among_the_nearest_of_one_end(
    max_neighbours: int, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MIN_SCORES_FOR_GUESS", small)  # by each row's nearest, or by all pairs
    a = near(300)
    scores = unit(a) @ unit(a).T
    np.fill_diagonal(scores, -2)
    best = np.argsort(-scores, axis=1)[:, :max_neighbours]
    expected = {tuple(sorted((row, int(column)))) for row in range(300) for column in best[row]}
    found = paraphrases(a, max_neighbours=max_neighbours, device="cpu")
    assert {pair[1:] for pair in found} == expected
    b = near(200, seed=1)
    scores = unit(a) @ unit(b).T
    forth, back = (np.argsort(-side, axis=1)[:, :max_neighbours] for side in (scores, scores.T))
    expected = {(row, int(column)) for row in range(300) for column in forth[row]}
    expected |= {(int(row), column) for column in range(200) for row in back[column]}
    found = paraphrases(a, b, max_neighbours=max_neighbours, device="cpu")
    assert {pair[1:] for pair in found} == expected


def test_a_late_pair_that_pushes_two_out_leaves_no_gap() -> None:
    """The first vector is the best of every late one until, tiles later, their twins are seen."""
    random = np.random.default_rng(1)
    hub, early, base = (unit(random.normal(size=(count, 256)).astype(np.float32)) for count in (1, 1023, 480))
    early, base = (unit(part - (part @ hub.T) * hub) for part in (early, base))
    twins = unit(np.repeat(base, 2, 0) + 0.3 * unit(random.normal(size=(960, 256)).astype(np.float32)))
    a = unit(np.vstack([hub, early, 0.8 * hub + 0.6 * twins]))
    scores = a @ a.T - 9 * np.eye(len(a), dtype=np.float32)
    pairs = {(min(pair), max(pair)) for pair in enumerate(scores.argmax(1).tolist())}
    expected = sorted((scores[pair] for pair in pairs), reverse=True)[:900]
    found = paraphrases(a, max_pairs=900, max_neighbours=1, device="cpu")
    assert len(found) == len(expected) == 900
    assert np.allclose(found.scores_P, expected, atol=2e-6)


@pytest.mark.parametrize("is_self", [True, False])
def test_the_best_near_pairs_in_any_order(is_self: bool) -> None:
    """Parts small enough that the floor rises many times; against all pairs at once."""
    random = np.random.default_rng(0)
    rows, columns = np.triu_indices(120, 1) if is_self else np.indices((80, 90)).reshape(2, -1)
    scores = random.permutation(len(rows)).astype(np.float32)
    at_once = Best(60, -np.inf, 2, is_self)
    at_once.add(rows, columns, scores)
    in_parts = Best(60, -np.inf, 2, is_self)
    for part in np.array_split(random.permutation(len(rows)), 100):
        in_parts._limit = 0
        in_parts.add(rows[part], columns[part], scores[part])
        assert in_parts._num_held <= 2 * 60 + 1
    assert in_parts.floor > 0
    assert [*zip(*in_parts.found(), strict=True)] == [*zip(*at_once.found(), strict=True)]


def test_a_crowd_of_equals_does_not_fill_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_SCORES_FOR_GUESS", 1000)
    a = near(1000)
    a[:500] = a[0]  # 124,750 pairs of cosine 1
    found = paraphrases(a, max_pairs=2_500, max_neighbours=3, device="cpu")
    of_crowd = (found.first_P < 500) & (found.second_P < 500)
    assert 0 < of_crowd.sum() <= 500 * 3
    assert (~of_crowd).sum() > 300
    assert len(paraphrases(a, max_pairs=900, device="cpu")) == 900


def test_cells_find_most_of_them() -> None:
    a = near(4000)
    exact = {pair[1:] for pair in paraphrases(a, max_pairs=2000, device="cpu")}
    found = paraphrases(a, max_pairs=2000, is_exact=False, device="cpu")
    assert len(found) == 2000
    assert len({pair[1:] for pair in found}) == 2000  # each once
    assert (found.first_P < found.second_P).all()
    assert len(exact & {pair[1:] for pair in found}) > 1800
    two = paraphrases(a, near(2000, seed=1), max_pairs=500, is_exact=False, device="cpu")
    assert len({pair[1:] for pair in two}) == 500


def test_texts_are_encoded(tiny_bert: object) -> None:
    model = BiEncoder.load(str(tiny_bert), device="cpu")
    (pair,) = paraphrases(["the cat", "it is raining", "the cat"], model=model, max_pairs=1)
    assert pair[1:] == (0, 2)
    assert pair.score == pytest.approx(1, abs=1e-5)


def test_a_tensor_and_inner_products() -> None:
    a = near(50)
    assert len(paraphrases(torch.from_numpy(a), max_pairs=5)) == 5
    found = mine(a, None, 1)
    scores = a @ a.T
    assert found.scores_P[0] == pytest.approx(np.triu(scores, 1).max(), rel=1e-5)


def test_nothing_and_one() -> None:
    assert len(paraphrases([])) == 0
    assert len(paraphrases(near(1))) == 0
    assert len(paraphrases(near(3), np.zeros((0, 48), np.float32))) == 0


def test_bad_input_is_refused() -> None:
    broken = near(5)
    broken[3, 2] = np.nan
    with pytest.raises(InputError, match="Vector 3 of the texts holds NaN"):
        paraphrases(broken)
    with pytest.raises(InputError, match="encode both with one model"):
        paraphrases(near(5), near(5, width=8))
    with pytest.raises(InputError, match="at least 1"):
        paraphrases(near(5), max_pairs=0)
    with pytest.raises(InputError, match="not one string"):
        paraphrases("a text")
    with pytest.raises(InputError, match="min_score"):
        paraphrases(near(5), min_score=float("nan"))


def test_vectors_of_another_model(tiny_bert: object) -> None:
    model = BiEncoder.load(str(tiny_bert), device="cpu")
    with pytest.raises(InputError, match="another model made them"):
        paraphrases(near(5, width=7), model=model)
