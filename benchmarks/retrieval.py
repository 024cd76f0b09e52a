"""Retrieval by each way alone, fused and re-ranked: nDCG@10, milliseconds a query, bytes a document.

Late interaction is that of the bundled encoder's own tokens, projected to their principal directions and not trained,
unless --late names a model; sparse vectors are measured where --sparse names one.

Indexes in memory with the bundled models, every option at its default. Queries whose ids hash to an even number are
for development: defaults were chosen on them (but never on KorQuAD and Cranfield); figures are those of the others.

    python -m benchmarks.retrieval DATA --record                writes results/<day>-retrieval.json and .svg
    python -m benchmarks.retrieval DATA --only-rerank --record  writes results/<day>-reranked.json
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from benchmarks.chart import frontier
from benchmarks.korean_pages import build, build_short, is_development, rows_of
from munjang import BiEncoder, CrossEncoder, Index, MultiVectorEncoder, SparseEncoder, checkpoint
from munjang.engine.measure import processor
from munjang.evaluation.kinds.corpus import Retrieval, read_retrieval
from munjang.evaluation.metrics.ranking import rank_metrics
from munjang.index.rerank import Reranking

Ways: TypeAlias = dict[str, dict[str, Any]]
DEFAULT = "fused (default)"


def ways_of(late: str, has_sparse: bool) -> Ways:
    """Return the options of each way; `late` is how the late-interaction model is called."""
    ways: Ways = {
        "words": {"by": "words"},
        "dense": {"by": "dense"},
        "fused by ranks": {"by": ("words", "dense"), "fusion": "ranks"},
        DEFAULT: {"by": ("words", "dense")},
        late: {"by": "late"},
        "words, dense and late": {"by": ("words", "dense", "late")},
        "dense, re-ranked by late": {"by": "dense", "rerank": "late"},
    }
    if has_sparse:
        ways |= {"sparse": {"by": "sparse"}, "words, dense and sparse": {"by": ("words", "dense", "sparse")}}
        ways |= {"all four": {}}
    return ways


LATE_DIMENSION = 96
NUM_SAMPLED = 200  # documents whose tokens give the principal directions
NUM_RERANKED_QUERIES = 25  # of each set, unless told: a cross-encoder reads 100 pairs for each
NUM_LATE_QUERIES = 25  # of each set: candidates are encoded for each
NUM_DOCUMENTS = 1000  # of a set made of questions and answers
NUM_QUESTIONS = 300  # of WikiQA, with all sentences of their articles: some 3,000


def questions(data: Path, name: str, columns: list[str]) -> Retrieval:
    """Make a set of a table of questions and the texts that answer them."""
    rows = list(dict.fromkeys(tuple(row) for row in rows_of(data / "qa" / name, columns)))
    random.Random(0).shuffle(rows)
    id_of: dict[str, str] = {}
    queries: dict[str, str] = {}
    relevances: dict[str, dict[str, float]] = {}
    for question, text in rows:
        if len(id_of) < NUM_DOCUMENTS and question not in queries.values():
            number = f"q{len(queries)}"
            queries[number] = question
            relevances[number] = {id_of.setdefault(text, f"d{len(id_of)}"): 1.0}
    return Retrieval(name, {id: text for text, id in id_of.items()}, queries, relevances)


def sentences(data: Path) -> Retrieval:
    """Make a set of questions and the sentences of the articles that may answer them, NUM_QUESTIONS of WikiQA."""
    rows = list(rows_of(data / "qa/wikiqa-train", ["question", "sentence", "is_answer"]))
    answered = sorted({question for question, _, is_answer in rows if is_answer.strip() == "1"})
    number = min(NUM_QUESTIONS, len(answered))
    place_of = {question: place for place, question in enumerate(random.Random(0).sample(answered, number))}
    id_of: dict[str, str] = {}
    queries: dict[str, str] = {}
    relevances: dict[str, dict[str, float]] = {}
    for question, sentence, is_answer in rows:
        if question in place_of:
            id = id_of.setdefault(sentence, f"d{len(id_of)}")
            if is_answer.strip() == "1":
                query = f"q{place_of[question]}"
                queries[query] = question
                relevances.setdefault(query, {})[id] = 1.0
    return Retrieval("wikiqa", {id: text for text, id in id_of.items()}, queries, relevances)


SETS: dict[str, Callable[[Path], Retrieval]] = {
    "KorQuAD": lambda data: read_retrieval(data / "retrieval/korquad"),
    "Cranfield": lambda data: read_retrieval(data / "retrieval/cranfield"),
    "long Korean pages": build,
    "Korean pages of 830 characters": build_short,
    "KoBEST BoolQ": lambda data: questions(data, "korean-boolq", ["question", "passage"]),
    "MedQuAD": lambda data: questions(data, "medquad", ["question", "answer"]),
    "WikiQA": sentences,
}


def measure(
    data: Retrieval,
    model: BiEncoder,
    max_queries: int,
    late: MultiVectorEncoder | None = None,
    sparse: SparseEncoder | None = None,
) -> Iterator[dict[str, Any]]:
    """Search a set by every way; yield a row for each."""
    ways = ways_of("late, untrained" if late is None else "late", sparse is not None)
    tokens = late_of(model, list(data.corpus.values())[:NUM_SAMPLED]) if late is None else late
    with Index.open("memory:", model, late=tokens, sparse=sparse) as index:
        index.add(list(data.corpus.values()), list(data.corpus), progress=False)
        size = bytes_of(index)
        held = [query for query in data.queries if not is_development(query)][:max_queries]
        for name, options in ways.items():
            by = options.get("by", tuple(size))
            num_bytes = sum(size[way] for way in ([by] if isinstance(by, str) else by))
            asked = {**options, "rerank": tokens} if "rerank" in options else options
            queries = held[:NUM_LATE_QUERIES] if "rerank" in options else held
            figures = row(name, data, *searched(index, data, queries, asked))
            yield figures | {"bytes_a_document": round(num_bytes / len(data.corpus))}


def reranked(data: Retrieval, model: BiEncoder, scorer: CrossEncoder, max_queries: int) -> Iterator[dict[str, Any]]:
    """Search a part of a set's queries by default, without and with re-ranking; yield a row for each."""
    with Index.open("memory:", model) as index:
        index.add(list(data.corpus.values()), list(data.corpus), progress=False)
        few = [query for query in data.queries if not is_development(query)][:max_queries]
        for name, options in (("fused, these queries", {}), ("fused and re-ranked", {"rerank": Reranking(scorer)})):
            yield row(name, data, *searched(index, data, few, options))


def bytes_of(index: Index) -> dict[str, int]:
    """Return the bytes that each way reads."""
    size = {"words": 0, "dense": index.info()["bytes"], "sparse": 0, "late": 0}
    for rows in index.scan():
        size["words"] += sum(len(text.encode()) for text in rows.terms or ())
        size["late"] += sum(vectors_TD.nbytes for vectors_TD in rows.tokens or ())
        size["sparse"] += 0 if rows.sparse is None else rows.sparse.indices.nbytes + rows.sparse.values.nbytes
    return {way: number for way, number in size.items() if number}


def late_of(model: BiEncoder, texts: list[str]) -> MultiVectorEncoder:
    """Make a late-interaction model of a bi-encoder without training: its tokens in their principal directions."""
    tokens_TD = np.concatenate(model.encode(texts, output="tokens", progress=False))
    _, directions_DD = np.linalg.eigh(tokens_TD.T @ tokens_TD)
    directions_KD = np.ascontiguousarray(directions_DD[:, -LATE_DIMENSION:].T)
    made = checkpoint.new_late(Path(model.model.folder), len(directions_KD))
    projection = torch.from_numpy(directions_KD)
    made.network.tail[0].linear.weight = torch.nn.Parameter(projection, requires_grad=False)  # type: ignore[attr-defined]
    return MultiVectorEncoder(made, model.device, model.dtype)


def searched(index: Index, data: Retrieval, queries: list[str], options: dict[str, Any]) -> tuple[Any, float, float]:
    """Return the hits of each query, the seconds of all and those of CPU time; queries come one by one."""
    index.search(data.queries[queries[0]], **options)  # what is loaded on first use
    started, computed = time.perf_counter(), time.process_time()
    found = {query: index.search(data.queries[query], **options) for query in queries}
    seconds = time.perf_counter() - started, time.process_time() - computed
    return {query: {hit.document_id: hit.score for hit in hits} for query, hits in found.items()}, *seconds


def row(name: str, data: Retrieval, run: Any, seconds: float, cpu_seconds: float) -> dict[str, Any]:
    """Return the figures of one way."""
    judged = {query: data.relevances[query] for query in run}
    figures: dict[str, Any] = {
        "way": name,
        "ndcg@10": round(100 * rank_metrics(judged, run, [10])["ndcg@10"], 2),
        "queries": len(run),
    }
    times = {"ms_a_query": seconds, "cpu_ms_a_query": cpu_seconds}
    return figures | {key: round(1000 * value / len(run), 2) for key, value in times.items()}


def picture(sets: dict[str, Any]) -> str:
    """Draw quality against CPU time for every set; what reads more bytes a document is larger."""
    names = ("way", "cpu_ms_a_query", "ndcg@10", "bytes_a_document")
    points = {
        name: [
            tuple(row[key] for key in names)
            for row in each["rows"]
            if row["queries"] == each["rows"][0]["queries"] and "bytes_a_document" in row
        ]
        for name, each in sets.items()
    }
    return frontier("nDCG@10 by milliseconds of CPU a query; size: bytes a document", points)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with retrieval/ and qa/")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--max-queries", type=int, default=1000, help="of each set")
    parser.add_argument("--dtype", default="int8")
    parser.add_argument("--late", help="folder of a late-interaction model; without it one is made, untrained")
    parser.add_argument("--sparse", help="folder of a sparse model")
    parser.add_argument(
        "--rerank", nargs="*", choices=list(SETS), default=["KorQuAD", "Cranfield"], help="sets to re-rank"
    )
    parser.add_argument("--only-rerank", action="store_true", help="measure only the sets of --rerank, re-ranked")
    parser.add_argument("--reranked-queries", type=int, default=NUM_RERANKED_QUERIES, help="of each set to re-rank")
    parser.add_argument("--record", action="store_true", help="write results/<day>-retrieval.json and .svg")
    options = parser.parse_args()
    model = BiEncoder.load(device="cpu", dtype=options.dtype)
    scorer = CrossEncoder.load(device="cpu", dtype=options.dtype)
    late = options.late and MultiVectorEncoder.load(options.late, "cpu", options.dtype)
    sparse = options.sparse and SparseEncoder.load(options.sparse, "cpu", options.dtype)
    sets = {}
    for name in options.rerank if options.only_rerank else options.sets:
        data = replace(SETS[name](options.data), name=name)
        rows = [] if options.only_rerank else list(measure(data, model, options.max_queries, late, sparse))
        rows += reranked(data, model, scorer, options.reranked_queries) if name in options.rerank else []
        sets[name] = {"documents": len(data.corpus), "rows": rows}
        print(name, f"{len(data.corpus):,} documents", *rows, sep="\n  ", flush=True)
    if options.record:
        name = "reranked" if options.only_rerank else "retrieval"
        stem = Path(__file__).parent / f"results/{datetime.now(UTC):%Y-%m-%d}-{name}"
        record = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": processor(),
            "cores": os.cpu_count(),
            "command": " ".join(["python -m benchmarks.retrieval", *sys.argv[1:]]),
            "dtype": options.dtype,
            "models": ["ko-en-small", "ko-en-reranker"],
            "sets": sets,
        }
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if not options.only_rerank:
            stem.with_suffix(".svg").write_text(picture(sets), encoding="utf-8")


if __name__ == "__main__":
    main()
