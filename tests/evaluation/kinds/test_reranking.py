"""Re-ranking: candidates of rows, of a table, of a first stage; equal scores gain nothing."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from munjang.evaluation.kinds.corpus import read_retrieval
from munjang.evaluation.metrics.ranking import rank_metrics
from munjang.index import Index
from munjang.index.rerank import Reranking
from tests.texts import ENGLISH, KOREAN

QUERIES = [ENGLISH[0]] * 6 + [KOREAN[0]] * 4 + ["all right"]
DOCUMENTS = [*ENGLISH[1:7], *KOREAN[1:5], "right"]
LABELS = np.array([0, 1, 0, 0, 1, 0, 1, 0, 0, 0, 1])
PAIRS = Examples("pairs", (QUERIES, DOCUMENTS), labels=LABELS)


def test_pairs_as_scikit_learn(model: BiEncoder, cross: CrossEncoder) -> None:
    of_cross = cross.predict(list(zip(QUERIES, DOCUMENTS, strict=True)))
    of_bi = model.similarity_pairwise(QUERIES, DOCUMENTS)
    for each, scores in ((cross, of_cross), (model, of_bi)):
        report = evaluate(each, PAIRS, kind="reranking")
        expected = [
            sklearn.metrics.average_precision_score(LABELS[rows], scores[rows]) for rows in (slice(6), slice(6, 10))
        ]
        assert (report.main, report.rows) == ("map", 2)
        assert report.score == pytest.approx(np.mean(expected))
        assert any("1 queries left out" in note for note in report.notes)


def test_columns_are_the_same_as_pairs(cross: CrossEncoder, write: Callable[..., Path]) -> None:
    lines = [
        f"{ENGLISH[0]}\t{ENGLISH[2]}\t{ENGLISH[1]}\t{ENGLISH[3]}",
        f"{KOREAN[0]}\t{KOREAN[1]}\t{KOREAN[2]}\t{KOREAN[3]}",
    ]
    wide = write("wide.tsv", "query\tpositive\tnegative_1\tnegative_2", *lines)
    rows = [
        (line.split("\t")[0], text, int(place == 0))
        for line in lines
        for place, text in enumerate(line.split("\t")[1:])
    ]
    tall = write("tall.tsv", "question\tsentence\tis_answer", *("\t".join(map(str, row)) for row in rows))
    assert evaluate(cross, wide, kind="reranking").metrics == evaluate(cross, tall, kind="reranking").metrics


def test_equal_scores_gain_nothing(model: BiEncoder) -> None:
    same = Examples("same", (["query"], ["same words"], ["same  words"], ["same   words"]))
    assert evaluate(model, same, kind="reranking").score == pytest.approx(1 / 3)  # white space is no token


def test_first_stage(model: BiEncoder, cross: CrossEncoder, retrieval: Path) -> None:
    report = evaluate(cross, retrieval, kind="reranking", first_stage=model, candidates=2)
    assert report.metrics["before_ndcg@10"] == pytest.approx(evaluate(model, retrieval).metrics["ndcg@3"], abs=0.2)
    assert report.metrics["before_map"] >= 0.5  # the documents with the queries' own words came first
    assert 0 < report.score <= 1
    alone = evaluate(cross, retrieval, kind="reranking", first_stage=model, candidates=1)
    assert alone.score == alone.metrics["before_map"] == pytest.approx((1 + 1 / 2) / 2)  # nothing to put in order
    with pytest.raises(InputError, match="a bi-encoder has to find them"):
        evaluate(cross, retrieval, kind="reranking")


def test_candidates_of_a_folder(cross: CrossEncoder, retrieval: Path, write: Callable[..., Path]) -> None:
    write("set/candidates.tsv", "query_id\tcorpus_id\tscore", "1\td1\t9", "1\tunknown\t8", "2\td4\t7")
    report = evaluate(cross, retrieval, kind="reranking")
    assert report.score == pytest.approx(0.5)  # the right one alone; none of the right ones


@pytest.fixture
def larger(write: Callable[..., Path]) -> Path:
    """Twelve documents, three queries of other words with two right ones each."""
    texts = [*ENGLISH[1:7], *KOREAN[1:7]]
    write("larger/corpus.tsv", "id\ttext", *(f"d{place:02}\t{text}" for place, text in enumerate(texts)))
    write("larger/queries.tsv", "id\ttext", f"a\t{ENGLISH[0]}", f"b\t{KOREAN[0]}", "c\tdogs run")
    judged = ["a\td01\t1", "a\td07\t1", "b\td09\t1", "b\td02\t1", "c\td03\t1", "c\td11\t1"]
    return write("larger/qrels.tsv", "query_id\tcorpus_id\tscore", *judged).parent


def half_of(cross: CrossEncoder) -> CrossEncoder:
    """The same one, whose folder asks for half of the order."""
    half = copy.copy(cross)
    half.model = replace(cross.model, config={**cross.model.config, "munjang_rerank_weight": 0.5})
    return half


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
def test_the_order_of_a_share_is_that_of_an_index(
    share: float, model: BiEncoder, cross: CrossEncoder, larger: Path
) -> None:
    report = evaluate(cross, larger, kind="reranking", first_stage=model, candidates=8, rerank_weight=share)
    data = read_retrieval(larger, "test")
    with Index.open("memory:", model, chunk=0) as index:
        index.add(list(data.corpus.values()), list(data.corpus))
        found = index.search(list(data.queries.values()), 8, 8, rerank=Reranking(cross, weight=share))
    run = {
        query: {hit.document_id: -float(place) for place, hit in enumerate(hits)}
        for query, hits in zip(data.queries, found, strict=True)
    }
    wanted = rank_metrics(data.relevances, run, [10], ["map", "mrr", "ndcg"])
    assert [report.metrics[name] for name in ("map", "mrr@10", "ndcg@10")] == pytest.approx(
        [wanted[name] for name in ("map@10", "mrr@10", "ndcg@10")]
    )
    assert any("a weight of" in note for note in report.notes) == (share < 1)
    if share == 0:
        assert report.score == report.metrics["before_map"]


def test_the_models_own_share_is_the_default(model: BiEncoder, cross: CrossEncoder, larger: Path) -> None:
    half, stage = half_of(cross), {"kind": "reranking", "first_stage": model}
    metrics = {share: evaluate(cross, larger, rerank_weight=share, **stage).metrics for share in (0.5, 1.0)}
    assert metrics[0.5] != metrics[1.0]
    assert evaluate(half, larger, **stage).metrics == metrics[0.5]
    assert evaluate(half, larger, rerank_weight=1.0, **stage).metrics == metrics[1.0]
    assert evaluate(cross, larger, **stage).metrics == metrics[1.0]
    alone = evaluate(half, PAIRS, kind="reranking")
    assert alone.metrics == evaluate(cross, PAIRS, kind="reranking").metrics
    assert any("the re-ranker alone: it asks for a weight of 0.5" in note for note in alone.notes)


def test_who_had_ordered_the_candidates_of_the_data(
    model: BiEncoder, cross: CrossEncoder, retrieval: Path, write: Callable[..., Path]
) -> None:
    """A first stage that scores them, or the scores of their table."""
    staged = evaluate(cross, PAIRS, kind="reranking", first_stage=model, rerank_weight=0.0)
    assert staged.score == staged.metrics["before_map"] == evaluate(model, PAIRS, kind="reranking").score
    for scores, wanted in (((9, 8), 1.0), ((8, 9), 0.5)):  # d1 is right for query 1, nothing is there for query 2
        rows = [f"1\td1\t{scores[0]}", f"1\td4\t{scores[1]}"]
        write("set/candidates.tsv", "query_id\tcorpus_id\tscore", *rows)
        assert evaluate(cross, retrieval, kind="reranking", rerank_weight=0.0).score == pytest.approx(wanted / 2)


def test_refused(cross: CrossEncoder, model: BiEncoder) -> None:
    with pytest.raises(InputError, match="no query has both a right and a wrong document"):
        evaluate(model, Examples("right", (["q"], ["d"]), labels=np.array([1])), kind="reranking")
    with pytest.raises(InputError, match=r"rerank_weight 0\.5 leaves weight to the retrieval, and pairs has no scores"):
        evaluate(cross, PAIRS, kind="reranking", rerank_weight=0.5)
    with pytest.raises(InputError, match="rerank_weight must be between 0 and 1, not 2"):
        evaluate(cross, PAIRS, kind="reranking", rerank_weight=2)
    with pytest.raises(InputError, match="text columns are needed"):
        evaluate(cross, Examples("one", (["q"], ["d"])), kind="reranking")
