"""Documents in order: of one query and of many, ties, what is no number."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from munjang import CrossEncoder
from munjang.errors import InputError, TruncationWarning
from tests.texts import mixed


def test_rank_is_predict_in_order(scorer: CrossEncoder) -> None:
    documents = mixed(30, seed=2, longest=10)
    hits = scorer.rank("the quick fox", documents)
    scores = scorer.predict([("the quick fox", document) for document in documents])
    assert sorted(hit.index for hit in hits) == list(range(30))
    assert [hit.text for hit in hits] == [documents[hit.index] for hit in hits]
    np.testing.assert_allclose([hit.score for hit in hits], scores[[hit.index for hit in hits]], atol=1e-6)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.scale for hit in hits} == {"sigmoid"}
    assert scorer.rank("the quick fox", documents, top_k=4) == hits[:4]
    assert scorer.rank("the quick fox", documents, top_k=100) == hits


def test_rank_many_is_rank(scorer: CrossEncoder) -> None:
    queries = ["one fox", "two dogs", "nothing", "one fox"]
    documents = [mixed(5, seed=3, longest=8), mixed(9, seed=4, longest=8), [], np.array(["a", "b"])]
    many = scorer.rank_many(queries, documents, top_k=3)
    assert [len(hits) for hits in many] == [3, 3, 0, 2]
    for query, each, hits in zip(queries, documents, many, strict=True):
        alone = scorer.rank(query, each, top_k=3)
        assert [(hit.index, hit.text) for hit in hits] == [(hit.index, hit.text) for hit in alone]
        np.testing.assert_allclose([hit.score for hit in hits], [hit.score for hit in alone], atol=1e-6)
    assert scorer.rank_many([], []) == []


def test_ties_keep_their_order(scorer: CrossEncoder) -> None:
    hits = scorer.rank("query", ["same", "same", "other", "same"])
    same = [hit.index for hit in hits if hit.text == "same"]
    assert same == [0, 1, 3]
    many = scorer.rank("query", ["same", "b", "c", "d", "e"] * 7)  # the last ones are where torch rounds otherwise
    assert [hit.index for hit in many if hit.text == "same"] == list(range(0, 35, 5))
    flat = scorer.rank("query", ["c", "a", "b"], activation=lambda logits: logits * 0)
    assert [hit.index for hit in flat] == [0, 1, 2]


def test_scores_that_are_no_numbers_come_last(scorer: CrossEncoder) -> None:
    def holes(logits: torch.Tensor) -> torch.Tensor:
        out = logits.clone()
        out[0] = float("nan")
        return out

    assert [hit.index for hit in scorer.rank("query", ["a", "b", "c"], activation=holes)][-1] == 0


@pytest.mark.parametrize(
    ("activation", "scale"),
    [(None, "sigmoid"), ("Identity", "logit"), ("Tanh", "tanh"), (nn.Sigmoid(), "sigmoid"), (torch.sigmoid, "custom")],
)
def test_every_hit_says_its_scale(scorer: CrossEncoder, activation: Any, scale: str) -> None:
    assert scorer.rank("query", ["a"], activation=activation)[0].scale == scale


def test_rank_refused(scorer: CrossEncoder, labels: CrossEncoder) -> None:
    for call, message in (
        (lambda: labels.rank("a", ["b"]), "needs one score a pair; this model has 3 labels"),
        (lambda: scorer.rank("a", ["b"], top_k=0), "top_k must be a whole number, at least 1, not 0"),
        (lambda: scorer.rank("a", ["b"], top_k=1.5), "top_k must be a whole number, at least 1, not 1.5"),
        (lambda: scorer.rank("a", ["b"], top_k="3"), "top_k must be a whole number, at least 1, not '3'"),
        (lambda: scorer.rank("a", None), "documents should be a list of strings, not missing"),
        (lambda: scorer.rank(None, ["b"]), "Item 0 of the queries is missing"),
        (lambda: scorer.rank_many(["a"], None), "a list of documents for each query, not NoneType"),
        (lambda: scorer.rank_many(["a"], "b"), "a list of documents for each query, not str"),
        (lambda: scorer.rank("a", "b"), "documents should be a list of strings, not str"),
        (lambda: scorer.rank("a", [None]), "Item 0 of the documents is missing"),
        (lambda: scorer.rank(["a"], ["b"]), "Item 0 of the queries is list"),
        (lambda: scorer.rank_many("ab", [["a"], ["b"]]), "queries should be a list of strings, not str"),
        (lambda: scorer.rank_many(["a"], [["a"], ["b"]]), "There are 1 queries and 2 lists of documents"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert scorer.rank("query", []) == []
    assert len(scorer.rank("query", ["a", "b"], top_k=np.int64(1))) == 1


def test_long_documents_are_counted(scorer: CrossEncoder) -> None:
    long = "word " * 300
    with pytest.warns(TruncationWarning, match="2 of 3 pairs are longer than 100 tokens"):
        hits = scorer.rank("query", [long, "short", long])
    assert [hit.index for hit in hits if hit.text == long] == [0, 2]
