"""The benchmark of retrieval and its Korean pages, on a few rows."""

import lzma
from pathlib import Path

import pytest

from benchmarks import korean_pages, retrieval
from munjang import BiEncoder, SparseEncoder
from munjang.evaluation.kinds.corpus import read_retrieval
from tests.token_models import make_splade

LONG = "법원은 다음과 같이 판단하였다. " * 60


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "retrieval/korquad").mkdir(parents=True)
    (tmp_path / "qa").mkdir()
    paragraphs = [(f"p{n}", "가" if n < 3 else "나", f"{n}번 문단이다. " * 50) for n in range(5)]
    tables = {
        "retrieval/korquad/corpus.tsv.xz": [("id", "title", "text"), *paragraphs],
        "retrieval/korquad/queries.tsv.xz": [
            ("id", "text"),
            ("q0", "0번 문단은?"),
            ("q1", "무엇인가?"),
            ("q4", "4번?"),
        ],
        "retrieval/korquad/qrels.tsv.xz": [
            ("q", "d", "score"),
            ("q0", "p0", "1"),
            ("q1", "p1", "1"),
            ("q4", "p4", "1"),
        ],
        "qa/korean-precedents.tsv.xz": [
            ("question", "passage", "field"),
            *((f"질문 {n}", f"{LONG}{n}", "민사") for n in range(3)),
            ("짧은 것", "짧다", "민사"),
        ],
    }
    for name, rows in tables.items():
        text = "".join("\t".join(row) + "\n" for row in rows)
        (tmp_path / name).write_bytes(lzma.compress(text.encode()))
    return tmp_path


def test_pages_are_long_and_have_the_question_that_repeats_least(data: Path, tmp_path: Path) -> None:
    pages = korean_pages.build(data)
    assert all(len(text) >= korean_pages.MIN_PAGE_CHARACTERS for text in pages.corpus.values())
    # two paragraphs of 450 characters make a page; the article 가 has a third, which is too short alone
    assert sorted(pages.corpus) == ["law-0", "law-1", "law-2", "wiki-p0", "wiki-p3"]
    assert pages.relevances["q1"] == {"wiki-p0": 1.0}  # q0 repeats more of it
    assert "q0" not in pages.queries


def test_short_pages_have_two_questions(data: Path) -> None:
    """Two paragraphs of 450 characters are within the length, a holding of a thousand is not."""
    pages = korean_pages.build_short(data)
    assert sorted(pages.corpus) == ["wiki-p0", "wiki-p3"]
    assert sorted(pages.queries) == ["q0", "q1", "q4"]


def test_every_way_is_measured(tiny_bert: Path, tmp_path: Path) -> None:
    for name, rows in {
        "corpus": ["id\ttext", "a\tred apples", "b\tblue whales", "c\tgreen trees"],
        "queries": ["id\ttext", *(f"{n}\twhales" for n in range(8))],
        "qrels": ["query\tdocument\tscore", *(f"{n}\tb\t1" for n in range(8))],
    }.items():
        (tmp_path / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    sparse = SparseEncoder.load(make_splade(tmp_path / "sparse"), "cpu")
    model = BiEncoder.load(tiny_bert, "cpu")
    for given in (None, sparse):
        figures = list(retrieval.measure(read_retrieval(tmp_path), model, 5, sparse=given))
        assert [row["way"] for row in figures] == list(retrieval.ways_of("late, untrained", given is not None))
        assert figures[0]["ndcg@10"] == 100.0
        sizes = [row["bytes_a_document"] for row in figures]
        assert sizes[2] == sizes[3] == pytest.approx(sizes[0] + sizes[1], abs=1)


def test_questions_and_the_sentences_of_articles(tmp_path: Path) -> None:
    (tmp_path / "qa").mkdir()
    lines = ["question\tsentence\tis_answer", "who?\tnobody\t0", "who?\tAda\t1", "why?\tnobody\t0"]
    (tmp_path / "qa/wikiqa-train.tsv.xz").write_bytes(lzma.compress("\n".join([*lines, ""]).encode()))
    found = retrieval.sentences(tmp_path)
    assert found.queries == {"q0": "who?"}
    assert found.relevances == {"q0": {"d1": 1.0}}
    assert list(found.corpus.values()) == ["nobody", "Ada"]
