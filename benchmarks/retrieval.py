"""Retrieval by each way alone, fused and re-ranked: nDCG@10, milliseconds a query, bytes a document.

Indexes in memory with the bundled models, every option at its default. Queries whose ids hash to an even number are
for development: defaults were chosen on them (but never on KorQuAD and Cranfield); figures are those of the others.

    python -m benchmarks.retrieval DATA --record    writes results/<day>-retrieval.json and .svg
"""

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.chart import bars
from benchmarks.korean_pages import build, is_development, rows_of
from munjang import BiEncoder, CrossEncoder, Index
from munjang.engine.measure import processor
from munjang.evaluation.kinds.corpus import Retrieval, read_retrieval
from munjang.evaluation.metrics.ranking import rank_metrics
from munjang.index.rerank import Reranking

WAYS: dict[str, dict[str, Any]] = {
    "words": {"by": "words"},
    "dense": {"by": "dense"},
    "fused by ranks": {"fusion": "ranks"},
    "fused (default)": {},
}
NUM_RERANKED_QUERIES = 40  # of each set: a cross-encoder reads 100 pairs for each
NUM_DOCUMENTS = 2000  # of a set made of questions and answers


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


SETS: dict[str, Callable[[Path], Retrieval]] = {
    "KorQuAD": lambda data: read_retrieval(data / "retrieval/korquad"),
    "Cranfield": lambda data: read_retrieval(data / "retrieval/cranfield"),
    "long Korean pages": build,
    "KoBEST BoolQ": lambda data: questions(data, "korean-boolq", ["question", "passage"]),
    "MedQuAD": lambda data: questions(data, "medquad", ["question", "answer"]),
}


def measure(
    data: Retrieval, model: BiEncoder, scorer: CrossEncoder | None, max_queries: int
) -> Iterator[dict[str, Any]]:
    """Search a set by every way, then re-rank a part of its queries; yield a row for each."""
    with Index.open("memory:", model) as index:
        index.add(list(data.corpus.values()), list(data.corpus), progress=False)
        words = sum(len(text.encode()) for rows in index.scan() for text in rows.terms or ())
        size = {"words": words, "dense": index.info()["bytes"]}
        held = [query for query in data.queries if not is_development(query)][:max_queries]
        for name, options in WAYS.items():
            num_bytes = sum(size[way] for way in size if options.get("by", way) == way)
            figures = row(name, data, *searched(index, data, held, options))
            yield figures | {"bytes_a_document": round(num_bytes / len(data.corpus))}
        few = held[:NUM_RERANKED_QUERIES]
        if scorer is not None:
            for name, options in (("fused, these queries", {}), ("fused and re-ranked", {"rerank": Reranking(scorer)})):
                yield row(name, data, *searched(index, data, few, options))


def searched(index: Index, data: Retrieval, queries: list[str], options: dict[str, Any]) -> tuple[Any, float]:
    """Return the hits of each query and the seconds of all; queries come one by one, as from people."""
    index.search(data.queries[queries[0]], **options)  # what is loaded on first use
    started = time.perf_counter()
    found = {query: index.search(data.queries[query], **options) for query in queries}
    return {query: {hit.document_id: hit.score for hit in hits} for query, hits in found.items()}, (
        time.perf_counter() - started
    )


def row(name: str, data: Retrieval, run: Any, seconds: float) -> dict[str, Any]:
    """Return the figures of one way."""
    judged = {query: data.relevances[query] for query in run}
    quality = 100 * rank_metrics(judged, run, [10])["ndcg@10"]
    milliseconds = round(1000 * seconds / len(run), 2)
    return {"way": name, "ndcg@10": round(quality, 2), "queries": len(run), "ms_a_query": milliseconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with retrieval/ and qa/")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--max-queries", type=int, default=1000, help="of each set")
    parser.add_argument("--dtype", default="int8")
    parser.add_argument(
        "--rerank", nargs="*", choices=list(SETS), default=["KorQuAD", "Cranfield"], help="sets to re-rank"
    )
    parser.add_argument("--record", action="store_true", help="write results/<day>-retrieval.json and .svg")
    options = parser.parse_args()
    model = BiEncoder.load(device="cpu", dtype=options.dtype)
    scorer = CrossEncoder.load(device="cpu", dtype=options.dtype)
    sets = {}
    for name in options.sets:
        data = replace(SETS[name](options.data), name=name)
        rows = list(measure(data, model, scorer if name in options.rerank else None, options.max_queries))
        sets[name] = {"documents": len(data.corpus), "rows": rows}
        print(name, f"{len(data.corpus):,} documents", *rows, sep="\n  ", flush=True)
    if options.record:
        stem = Path(__file__).parent / f"results/{datetime.now(UTC):%Y-%m-%d}-retrieval"
        record = {
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": processor(),
            "cores": os.cpu_count(),
            "command": "python -m benchmarks.retrieval DATA",
            "dtype": options.dtype,
            "models": ["ko-en-small", "ko-en-reranker"],
            "sets": sets,
        }
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        groups = {
            name: {
                ("munjang " if "default" in row["way"] else "") + row["way"]: row["ndcg@10"] for row in each["rows"][:4]
            }
            for name, each in sets.items()
        }
        stem.with_suffix(".svg").write_text(bars("nDCG@10 by way of searching", groups), encoding="utf-8")


if __name__ == "__main__":
    main()
