"""Rankings: by hand, and as trec_eval computes them, ties included."""

import math

import numpy as np
import pytest
import pytrec_eval

from munjang.errors import InputError
from munjang.evaluation.metrics.ranking import MEASURES, gains_of, order, r_precision, rank_metrics

TREC = {"ndcg": "ndcg_cut", "map": "map_cut", "recall": "recall", "precision": "P"}


def test_by_hand() -> None:
    gains, judged = [0, 2, 0, 1], [1, 2, 3]  # the best one, of relevance 3, was not found
    found = {name: measure(gains, judged, 3) for name, measure in MEASURES.items()}
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert found["ndcg"] == pytest.approx(2 / math.log2(3) / ideal)
    assert found["map"] == pytest.approx((1 / 2) / 3)
    assert found["mrr"] == 1 / 2
    assert found["recall"] == pytest.approx(1 / 3)
    assert found["precision"] == pytest.approx(1 / 3)
    assert MEASURES["map"](gains, judged, 4) == pytest.approx((1 / 2 + 2 / 4) / 3)
    assert r_precision(gains, judged) == pytest.approx(1 / 3)


def random_run(seed: int) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    random = np.random.default_rng(seed)
    documents = [f"d{number}" for number in range(40)]
    relevances, run = {}, {}
    for query in map(str, range(12)):
        judged = random.choice(documents, random.integers(1, 15), replace=False)
        relevances[query] = {name: int(random.integers(-1, 4)) for name in judged}
        ranked = random.choice(documents, random.integers(1, 40), replace=False)
        # few distinct scores: many ties
        run[query] = {name: float(random.integers(0, 6)) / 5 for name in ranked}
    return relevances, run


@pytest.mark.parametrize("seed", range(6))
def test_as_trec_eval(seed: int) -> None:
    relevances, run = random_run(seed)
    wanted = {"ndcg_cut.1,5,10", "map_cut.1,5,10", "recall.1,5,10", "P.1,5,10", "recip_rank", "Rprec"}
    expected = pytrec_eval.RelevanceEvaluator(relevances, wanted).evaluate(run)
    assert len(expected) == 12
    for query, values in expected.items():
        gains, judged = gains_of(relevances[query], run[query]), list(relevances[query].values())
        for name, theirs in TREC.items():
            for k in (1, 5, 10):
                assert MEASURES[name](gains, judged, k) == pytest.approx(values[f"{theirs}_{k}"], abs=1e-9), (name, k)
        assert MEASURES["mrr"](gains, judged, 1000) == pytest.approx(values["recip_rank"], abs=1e-9)
        assert r_precision(gains, judged) == pytest.approx(values["Rprec"], abs=1e-9)


def test_mean_as_trec_eval() -> None:
    relevances, run = random_run(9)
    expected = pytrec_eval.RelevanceEvaluator(relevances, {"ndcg_cut.10"}).evaluate(run)
    has_some = [query for query, judged in relevances.items() if max(judged.values()) > 0]
    mean = np.mean([expected[query]["ndcg_cut_10"] for query in has_some])
    assert rank_metrics(relevances, run, at=[10])["ndcg@10"] == pytest.approx(mean, abs=1e-9)


def test_ties_go_by_id_from_the_greatest() -> None:
    assert order({"a": 1.0, "c": 1.0, "b": 2.0, "가": 1.0}) == ["b", "가", "c", "a"]
    assert order({"a": 0.1, "b": 0.1 - 1e-12}) == ["b", "a"]  # equal in float32


def test_a_query_without_ranking_counts_as_zero() -> None:
    relevances = {"1": {"a": 1}, "2": {"a": 1}, "nothing relevant": {"a": 0}}
    assert rank_metrics(relevances, {"1": {"a": 0.5}}, at=[1], measures=["recall"]) == {"recall@1": 0.5}


def test_refused() -> None:
    with pytest.raises(InputError, match="No query has a relevant document"):
        rank_metrics({"1": {"a": 0}}, {"1": {"a": 1.0}})
    with pytest.raises(InputError, match="not after \\[0\\]"):
        rank_metrics({"1": {"a": 1}}, {}, at=[0])
