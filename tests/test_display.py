"""Notebooks show records as tables, and a repr says what a thing is."""

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder, Index, evaluate
from munjang.data.examples import Examples
from munjang.display import MAX_ROWS, short, table
from munjang.tasks.cluster import ClusterConfig, cluster, groups_of
from munjang.tasks.keywords import keywords
from munjang.tasks.topics import TopicConfig, find_topics
from munjang.types import Hit, Hits

TEXTS = ["고양이가 소파에서 잔다.", "새끼 고양이가 낮잠을 잔다.", "주가가 크게 떨어졌다.", "은행이 금리를 올렸다."]


@pytest.fixture(scope="module")
def model() -> BiEncoder:
    return BiEncoder.load(dtype="float32", threads=1)


def test_markup_in_texts_is_text() -> None:
    shown = table("<script>", ["<b>"], [["<img src=x>"]])
    assert not any(mark in shown for mark in ("<script>", "<b>", "<img"))
    assert "&lt;img src=x&gt;" in shown


def test_many_rows_and_long_texts_are_cut() -> None:
    shown = table("rows", ["text"], [["a" * 1000]] * (MAX_ROWS + 2500))
    assert shown.count("<tr>") == MAX_ROWS + 1  # and the head
    assert "and 2,500 more" in shown
    assert short("b" * 1000, 10) == "b" * 9 + "…"


def test_models(model: BiEncoder) -> None:
    assert repr(model) == "BiEncoder('ko-en-small', dimension=384, max_length=512, cpu, float32)"
    assert "ko-en-small" in model._repr_html_()
    assert repr(CrossEncoder.load(threads=1)).startswith("CrossEncoder('ko-en-reranker', labels=1, ")


def test_hits_of_search_and_ranking(model: BiEncoder) -> None:
    index = Index.open("memory:", model)
    index.add(TEXTS)
    hits = index.search("고양이", k=2)
    assert isinstance(hits, Hits)
    assert "2 hits" in hits._repr_html_()
    assert "고양이" in hits._repr_html_()
    assert [type(row) for row in index.search(["a", "b"])] == [Hits, Hits]
    assert isinstance(CrossEncoder.load(threads=1).rank("고양이", TEXTS), Hits)
    assert repr(Hit(3, "a\nb", 0.5)) == "Hit(score=0.5000, index=3, text='a b')"


def test_reports_clusters_topics_keywords(model: BiEncoder) -> None:
    rows = Examples("pairs", (TEXTS, TEXTS[::-1]), scores=np.array([0.1, 0.9, 0.9, 0.2]))
    report = evaluate(model, rows, kind="sts")
    assert "pairs" in repr(report)
    assert "spearman_cosine" in report._repr_html_()
    vectors = model.encode(TEXTS)
    found = cluster(vectors, config=ClusterConfig(threshold=0.7, min_size=2))
    assert repr(found) == f"Clustering({found.num_clusters} clusters by communities, 4 rows, 2 in none)"
    assert found.sizes == [2]
    assert "고양이" in groups_of(found, vectors, TEXTS)._repr_html_()
    assert "고양이" in keywords(TEXTS[:1], model)[0]._repr_html_()
    topics = find_topics(TEXTS * 3, model, TopicConfig(num_topics=2))
    assert repr(topics).startswith("TopicModel(2 topics of 12 texts")
    assert "고양이" in topics._repr_html_()
