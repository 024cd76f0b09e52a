"""Search encoded files exactly, file by file, on any number of nodes: ground truth.    Q queries, D dimension.

Every file yields its k best hits for every query, and the best of those are the best of all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import InputError
from munjang.scale.addresses import absolute, inside, shown
from munjang.scale.manifest import Mapper, complete_manifest, read_table, vectors_of
from munjang.stores.base import Found
from munjang.stores.exact import METRICS, candidates
from munjang.stores.scoring import best, rescored
from munjang.types import Floats

FLOAT_PRECISIONS = ("float32", "float16")


def search_exactly(
    folder: str, queries_QD: Floats, k: int, metric: str = "cosine", mapper: Mapper = map
) -> list[Found]:
    """Return the k nearest rows of a folder for each query; ties are ordered by id.

    `search_exactly("vectors", model.encode_query(["a question"]), k=10)[0].ids`
    """
    manifest = complete_manifest(folder)
    if manifest.precision not in FLOAT_PRECISIONS:
        raise InputError(f"{shown(folder)} holds {manifest.precision} vectors; exact search needs floats.")
    if metric not in METRICS or k < 1:
        raise InputError(f"k must be at least 1, not {k}, and metric one of {', '.join(METRICS)}.")
    if queries_QD.ndim != 2 or queries_QD.shape[1] != manifest.dimension:
        raise InputError(f"Queries are [Q, {manifest.dimension}] here, not {list(queries_QD.shape)}.")
    search = FileSearch(absolute(folder), manifest.precision, np.asarray(queries_QD, np.float32), k, metric)
    nearest = [Found([], []) for _ in queries_QD]
    for of_file in mapper(search, manifest.files()):
        nearest = [merged(pair, k) for pair in zip(nearest, of_file, strict=True)]
    return nearest


def merged(rankings: Sequence[Found], k: int) -> Found:
    """Return the best k of several rankings."""
    ids = [row_id for ranking in rankings for row_id in ranking.ids]
    return best(ids, np.array([score for ranking in rankings for score in ranking.scores], np.float64), k)


@dataclass(frozen=True)
class FileSearch:
    """Find the k nearest rows of one file, on any node."""

    folder: str
    precision: str
    queries_QD: Floats
    k: int
    metric: str

    def __call__(self, name: str) -> list[Found]:
        table = read_table(inside(self.folder, name), ["id", "vector"])
        if not table.num_rows:
            return [Found([], []) for _ in self.queries_QD]
        vectors = np.asarray(vectors_of(table, self.precision), np.float32)
        ids = table.column("id").to_pylist()
        lengths = np.linalg.norm(vectors, axis=1)
        rows = np.arange(len(ids))
        nearest = candidates(self.queries_QD, vectors, lengths, rows, self.k, self.metric)
        return [
            rescored(query, [ids[row] for row in rows], vectors[rows], self.metric, self.k)
            for query, rows in zip(self.queries_QD, nearest, strict=True)
        ]
