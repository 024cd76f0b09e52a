"""Retrieval: our layout and BEIR's, trec_eval's figures, and what is wrong with a folder."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import pytrec_eval

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.evaluation import evaluate
from munjang.evaluation.kinds.base import Settings
from munjang.evaluation.kinds.corpus import read_retrieval
from munjang.evaluation.kinds.retrieval import search


def test_folder_is_read(retrieval: Path) -> None:
    data = read_retrieval(retrieval)
    assert data.corpus == {"d1": "a quick fox", "d2": "나는 오늘 학교에", "d3": "x lazy", "d4": "dogs run"}
    assert data.queries == {"1": "a quick fox", "2": "나는 오늘 학교에"}
    assert data.relevances == {"1": {"d1": 2}, "2": {"d2": 1, "d3": 1}}
    assert data.notes == ("1 queries of qrels are unknown or have nothing relevant",)
    assert list(read_retrieval(retrieval, max_queries=1).queries) == ["1"]


def test_as_trec_eval(model: BiEncoder, retrieval: Path) -> None:
    report = evaluate(model, retrieval)
    assert (report.kind, report.main, report.rows, report.dataset) == ("retrieval", "ndcg@10", 2, "set")
    data = read_retrieval(retrieval)
    judged = {query: {name: int(value) for name, value in each.items()} for query, each in data.relevances.items()}
    wanted = {"ndcg_cut.1,3,5,10", "map_cut.3,100", "recip_rank", "recall.1,3", "P.1,3"}
    run = search(model, data, 100, Settings())
    theirs = pytrec_eval.RelevanceEvaluator(judged, wanted).evaluate(run).values()
    names = {"ndcg@3": "ndcg_cut_3", "map@3": "map_cut_3", "map@100": "map_cut_100", "recall@1": "recall_1"}
    names |= {"ndcg@10": "ndcg_cut_10", "mrr@100": "recip_rank", "precision@3": "P_3"}
    for ours, name in names.items():
        assert report.metrics[ours] == pytest.approx(sum(each[name] for each in theirs) / 2, abs=1e-9), ours
    # the words of both queries are documents, and those come first
    assert (report.metrics["mrr@1"], report.metrics["recall@1"]) == (1, 0.75)


def test_queries_and_documents_have_their_prompts(retrieval: Path, tiny_bert: Path) -> None:
    prompted = BiEncoder.load(tiny_bert, device="cpu", threads=1)
    prompted.prompts = {"query": "query: ", "document": "passage: "}
    data = read_retrieval(retrieval)
    by_hand = prompted.encode("query: a quick fox", prompt="") @ prompted.encode("passage: x lazy", prompt="")
    assert search(prompted, data, 4, Settings())["1"]["d3"] == pytest.approx(float(by_hand), abs=1e-5)
    plain = Settings(query_prompt="", document_prompt="")
    assert search(prompted, data, 4, plain)["1"]["d1"] == pytest.approx(1, abs=1e-5)


def test_beir_layout(model: BiEncoder, write: Callable[..., Path], retrieval: Path) -> None:
    data = read_retrieval(retrieval)
    corpus = [{"_id": name, "title": "", "text": text, "metadata": {}} for name, text in data.corpus.items()]
    queries = [{"_id": name, "text": text} for name, text in data.queries.items()]
    write("beir/corpus.jsonl", *map(json.dumps, corpus))
    write("beir/queries.jsonl", *map(json.dumps, queries))
    judged = [f"{query}\t{name}\t{value:g}" for query, each in data.relevances.items() for name, value in each.items()]
    folder = write("beir/qrels/test.tsv", "query-id\tcorpus-id\tscore", *judged).parents[1]
    write("beir/qrels/dev.tsv", "query-id\tcorpus-id\tscore", judged[0])
    assert evaluate(model, folder).metrics == evaluate(model, retrieval).metrics
    assert evaluate(model, folder, split="dev").rows == 1
    with pytest.raises(InputError, match="has no other"):
        evaluate(model, folder, split="other")


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("qrels.tsv", ["q\td", "1\td1"], "needs three columns"),
        ("qrels.tsv", ["q\td\ts", "1\td1\tmuch"], "line 2: the relevance 'much' is not a number"),
        ("qrels.tsv", ["q\td\ts", "1\td1\t0"], "no query of queries has a relevant document"),
        ("qrels.tsv", ["q\td\ts", "1\tnone\t1"], "no document of qrels is in the corpus"),
        ("corpus.tsv", ["id\ttext", "d1\ta", "d1\tb"], "line 3: the id 'd1' is there twice"),
        ("corpus.tsv", ["id\ttext", "d1"], "1 fields, but the header has 2"),
    ],
)
def test_bad_folders(retrieval: Path, write: Callable[..., Path], name: str, lines: list[str], said: str) -> None:
    write(f"set/{name}", *lines)
    with pytest.raises(InputError, match=said):
        read_retrieval(retrieval)


def test_missing_tables(model: BiEncoder, retrieval: Path, tmp_path: Path) -> None:
    (retrieval / "queries.tsv").unlink()
    with pytest.raises(InputError, match=r"has no queries: a table queries\.tsv"):
        evaluate(model, retrieval)
    (retrieval / "qrels.tsv").unlink()
    with pytest.raises(InputError, match="has no qrels"):
        evaluate(model, retrieval, kind="retrieval")
    with pytest.raises(InputError, match="a folder with corpus, queries and qrels is needed"):
        evaluate(model, tmp_path / "nowhere", kind="retrieval")
