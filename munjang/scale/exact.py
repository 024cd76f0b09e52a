"""Exact search over encoded files, a file at a time and on any number of nodes: ground truth.    Q queries, D width.

Every file gives its k best for every query, and the best of those are the best of all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from munjang.errors import InputError
from munjang.scale.manifest import Each, complete_manifest, read_table, vectors_of
from munjang.scale.places import absolute, inside, shown
from munjang.stores.base import Found
from munjang.stores.exact import candidates
from munjang.stores.scoring import best, rescored
from munjang.types import Floats
from munjang.vectors.similarity import PAIRWISE

FLOATS = ("float32", "float16")


def search_exactly(folder: str, queries_QD: Floats, k: int, metric: str = "cosine", each: Each = map) -> list[Found]:
    """The k nearest rows of each query among all vectors of a folder; equal scores go by id.

    `search_exactly("vectors", model.encode_query(["a question"]), k=10)[0].ids`
    """
    manifest = complete_manifest(folder)
    if manifest.precision not in FLOATS:
        raise InputError(f"{shown(folder)} holds {manifest.precision} vectors; exact search needs floats.")
    if metric not in PAIRWISE or k < 1:
        raise InputError(f"k must be at least 1, not {k}, and metric one of {', '.join(sorted(PAIRWISE))}.")
    if queries_QD.ndim != 2 or queries_QD.shape[1] != manifest.dimension:
        raise InputError(f"Queries are [Q, {manifest.dimension}] here, not {list(queries_QD.shape)}.")
    nearest = Nearest(absolute(folder), manifest.precision, np.asarray(queries_QD, np.float32), k, metric)
    found = [Found([], []) for _ in queries_QD]
    for part in each(nearest, manifest.files()):
        found = [merged(pair, k) for pair in zip(found, part, strict=True)]
    return found


def merged(parts: Sequence[Found], k: int) -> Found:
    """The best k of several lists."""
    ids = [row_id for part in parts for row_id in part.ids]
    return best(ids, np.array([score for part in parts for score in part.scores], np.float64), k)


@dataclass(frozen=True)
class Nearest:
    """The k nearest rows of one file."""

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
        places = candidates(self.queries_QD, vectors, lengths, rows, self.k, self.metric)
        return [
            rescored(query, [ids[at] for at in some], vectors[some], self.metric, self.k)
            for query, some in zip(self.queries_QD, places, strict=True)
        ]
