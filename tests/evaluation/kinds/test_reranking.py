"""Re-ranking: candidates of rows, of a table, of a first stage; equal scores gain nothing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
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


def test_refused(cross: CrossEncoder, model: BiEncoder) -> None:
    with pytest.raises(InputError, match="no query has both a right and a wrong document"):
        evaluate(model, Examples("right", (["q"], ["d"]), labels=np.array([1])), kind="reranking")
    with pytest.raises(InputError, match="text columns are needed"):
        evaluate(cross, Examples("one", (["q"], ["d"])), kind="reranking")
