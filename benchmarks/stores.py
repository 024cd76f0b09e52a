"""Searching real vectors: a LanceDB folder by recall and time, exact search in memory beside faiss.

    python -m benchmarks.stores MODEL TEXTS.txt --rows 1000000 --folder /tmp/lance [--record]

MODEL makes the vectors of TEXTS (a static one makes a million in seconds); the last texts are the queries. Times are of
one query after the other, vector to hits, by the median; exact search takes turns with faiss's flat index.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from munjang import BiEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.stores import open_store
from munjang.stores.arrow import Columns
from munjang.stores.base import Schema, Store
from munjang.types import Floats, Ints
from munjang.vectors.similarity import unit

K = 10
QUERIES = 500
LOAD_ROWS = 100_000
EXACT_ROWS = 100_000
RESULTS = Path(__file__).parent / "results"


def nearest(vectors_ND: Floats, queries_QD: Floats) -> Ints:
    """The K nearest rows of each query, exactly: [Q, K]."""
    best_QK = torch.full((len(queries_QD), 0), 0.0)
    places_QK = torch.zeros(len(queries_QD), 0, dtype=torch.int64)
    queries = torch.from_numpy(queries_QD)
    for start in range(0, len(vectors_ND), LOAD_ROWS):
        scores = queries @ torch.from_numpy(np.ascontiguousarray(vectors_ND[start : start + LOAD_ROWS])).T
        some, at = scores.topk(K, dim=1)
        best_QK, places_QK = torch.cat([best_QK, some], 1), torch.cat([places_QK, at + start], 1)
        best_QK, order = best_QK.topk(K, dim=1)
        places_QK = places_QK.gather(1, order)
    return places_QK.numpy()


def fill(store: Store, texts: list[str], vectors_ND: Floats) -> None:
    """All rows, whole columns at a time."""
    for start in range(0, len(texts), LOAD_ROWS):
        some = texts[start : start + LOAD_ROWS]
        ids = pa.array([str(row) for row in range(start, start + len(some))])
        store.load(Columns(ids, pa.array(some), vectors_ND[start : start + LOAD_ROWS]), is_new=True)
        print(f"{start + len(some):,} rows stored", flush=True)


def times_of(search: Callable[[Floats], Any], queries_QD: Floats) -> tuple[list[float], list[Any]]:
    """Milliseconds of each query by itself, and what was found."""
    found, taken = [], []
    for query_D in queries_QD:
        clock = time.perf_counter()
        found.append(search(query_D[None]))
        taken.append(1000 * (time.perf_counter() - clock))
    return taken, found


def approximate(texts: list[str], vectors_ND: Floats, queries_QD: Floats, folder: Path) -> dict[str, Any]:
    """A folder of all rows: time and recall@10."""
    store = open_store(str(folder), Schema(vectors_ND.shape[1]), create=True)
    clock = time.perf_counter()
    fill(store, texts, vectors_ND)
    stored = time.perf_counter()
    print(store.compact(), flush=True)
    compacted = time.perf_counter()
    wanted_QK = nearest(vectors_ND, queries_QD)
    times_of(lambda query: store.search(query, K), queries_QD[:50])  # pages of the folder come into memory
    taken, found = times_of(lambda query: store.search(query, K)[0], queries_QD)
    with_rows, _ = times_of(lambda query: store.get(store.search(query, K)[0].ids), queries_QD[:200])
    shared = [
        len({int(id.partition("#")[0]) for id in each.ids} & set(row)) / K
        for each, row in zip(found, wanted_QK.tolist(), strict=True)
    ]
    return {
        "rows": len(texts),
        "dimension": vectors_ND.shape[1],
        "recall@10": round(statistics.mean(shared), 4),
        "p50_ms": round(statistics.median(taken), 2),
        "p95_ms": round(float(np.quantile(taken, 0.95)), 2),
        "p50_with_rows_ms": round(statistics.median(with_rows), 2),
        "store_s": round(stored - clock, 1),
        "compact_s": round(compacted - stored, 1),
    }


def exact(texts: list[str], vectors_ND: Floats, queries_QD: Floats, rounds: int) -> dict[str, Any]:
    """Memory against faiss, in turns."""
    import faiss

    store = open_store("memory:", Schema(vectors_ND.shape[1]), create=True)
    fill(store, texts, vectors_ND)
    flat = faiss.IndexFlatIP(vectors_ND.shape[1])
    flat.add(vectors_ND)
    sides: dict[str, Callable[[Floats], Any]] = {
        "ours": lambda query: store.search(query, K),
        "faiss": lambda query: flat.search(query, K),
    }
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, search in sides.items():
            taken[name] += times_of(search, queries_QD[:100])[0]
    many: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, search in sides.items():
            clock = time.perf_counter()
            search(queries_QD)
            many[name].append(1000 * (time.perf_counter() - clock) / len(queries_QD))
    one, all_at_once = ({name: statistics.median(each) for name, each in side.items()} for side in (taken, many))
    return {
        "rows": len(texts),
        "one_query_ms": {name: round(value, 2) for name, value in one.items()},
        "a_query_of_many_ms": {name: round(value, 3) for name, value in all_at_once.items()},
        "times_faiss_one": round(one["ours"] / one["faiss"], 3),
        "times_faiss_many": round(all_at_once["ours"] / all_at_once["faiss"], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the LanceDB folder is made; default: a temporary one")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/DATE-stores.json")
    options = parser.parse_args()
    texts = list(dict.fromkeys(text for text in read_texts(options.texts) if text.strip()))
    step = max(len(texts) // QUERIES, 1)
    asked = texts[::step][:QUERIES]
    rest = [text for row, text in enumerate(texts) if row % step or row // step >= QUERIES][: options.rows]
    model = BiEncoder.load(options.model)
    vectors_ND, queries_QD = (unit(model.encode(some, progress=True)) for some in (rest, asked))
    record: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="minutes"),
        "machine": processor(),
        "threads": torch.get_num_threads(),
        "model": options.model.name,
        "exact": exact(rest[:EXACT_ROWS], vectors_ND[:EXACT_ROWS], queries_QD, options.rounds),
    }
    print(json.dumps(record["exact"]), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        record["lance"] = approximate(rest, vectors_ND, queries_QD, options.folder or Path(folder) / "lance")
    print(json.dumps(record, indent=1))
    if options.record:
        path = RESULTS / f"{record['date'][:10]}-stores.json"
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
