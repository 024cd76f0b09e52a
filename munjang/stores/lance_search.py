"""Searching a LanceDB table by vectors and by words.    C candidates, D components."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.stores.base import Found, Schema
from munjang.stores.lance_table import METRICS
from munjang.stores.scoring import best
from munjang.types import Doubles, Floats
from munjang.vectors.nearest import kth_best
from munjang.vectors.similarity import PAIRWISE

SLACK, HALF_SLACK = 1e-5, 1e-2  # distances of the engine and scores of ours differ by rounding
OVERSAMPLE, MIN_CANDIDATES = 2, 100  # of an index, for scoring once more: 50 found 0.933 of a million rows' ten best
MORE = 8  # than k: enough to see, mostly, that the next one is further away
MAX_EQUAL = 20_000  # rows are read to find those of equal scores with the smallest ids
ATTEMPTS = 3  # others may move rows between finding and reading them


@dataclass(frozen=True)
class Nearest:
    """The nearest rows of one query, of those that fit the expression. No probes: there is no index."""

    table: Any
    schema: Schema
    num_probes: int
    expression: Any
    columns: Sequence[str] = ("id",)  # to read of what an index finds
    on_read: Callable[[Any], None] = lambda rows: None

    def __call__(self, query_D: Floats, k: int) -> Found:
        is_cosine = self.schema.metric == "cosine"
        if is_cosine and not query_D.any():
            return self.directionless(k, "has_id")  # all rows
        found = self.by_index(query_D, k) if self.num_probes else None
        if found is None:
            found = self.by_reading(query_D, k)
        if is_cosine and (len(found.ids) < k or found.scores[-1] <= 0):
            zeros = self.directionless(k, "is_zero")
            return best(found.ids + zeros.ids, np.array(found.scores + zeros.scores), k)
        return found

    def directionless(self, k: int, column: str) -> Found:
        """Rows whose cosine is 0 because one side is the zero vector; the engine leaves them out."""
        from lancedb.expr import col, lit

        chosen = col(column) == lit(True)
        where = chosen if self.expression is None else self.expression & chosen
        rows = self.table.search().where(where).select(["id"]).to_arrow()
        return best(rows.column("id").to_pylist(), np.zeros(rows.num_rows), k)

    def by_reading(self, query_D: Floats, k: int) -> Found:
        """Exactly. More is read where rows that were left out may be as close as the last one."""
        limit = k + MORE
        slack = HALF_SLACK if self.schema.vectors == "float16" else SLACK
        while True:
            rows = self.candidates(query_D, limit, ["id", "vector", "_distance"]).bypass_vector_index().to_arrow()
            found = best(rows.column("id").to_pylist(), self.scores(query_D, rows), k)
            if rows.num_rows < limit or limit > k + MAX_EQUAL:
                return found
            furthest = rows.column("_distance")[-1].as_py()
            worst = -math.sqrt(furthest) if self.schema.metric == "euclidean" else 1 - furthest
            if found.scores[-1] > worst + slack * (1 + abs(worst)):
                return found
            limit *= 4

    def by_index(self, query_D: Floats, k: int) -> Found | None:
        """None where the index gives fewer candidates than were asked for: few rows fit, and reading finds them."""
        limit = max(OVERSAMPLE * k, MIN_CANDIDATES)
        for _ in range(ATTEMPTS):
            query = self.candidates(query_D, limit, ["vector", "_distance"]).with_row_id(True)
            rows = query.nprobes(self.num_probes).to_arrow()
            if rows.num_rows < limit:
                return None
            scores_C = self.scores(query_D, rows)
            # the best and whoever is as good as the last of them; only these are read, as every column takes time
            chosen = np.flatnonzero(scores_C >= kth_best(scores_C, k))
            score_of = dict(zip(rows.column("_rowid").to_numpy()[chosen].tolist(), scores_C[chosen], strict=True))
            read = self.table.take_row_ids(list(score_of)).with_row_id().select(list(self.columns)).to_arrow()
            if read.num_rows == len(score_of):
                self.on_read(read)
                scores = np.array([score_of[row] for row in read.column("_rowid").to_pylist()])
                return best(read.column("id").to_pylist(), scores, k)
        return None

    def candidates(self, query_D: Floats, limit: int, columns: list[str]) -> Any:
        query = self.table.search(query_D, vector_column_name="vector").distance_type(METRICS[self.schema.metric])
        if self.expression is not None:
            query = query.where(self.expression, prefilter=True)
        return query.select(columns).limit(limit)

    def scores(self, query_D: Floats, rows: Any) -> Doubles:
        """In full precision."""
        from munjang.stores.lance_rows import matrix

        vectors_CD = np.ascontiguousarray(matrix(rows.column("vector"), self.schema.dimension), np.float32)
        scores = PAIRWISE[self.schema.metric](np.broadcast_to(query_D, vectors_CD.shape), vectors_CD)
        return np.asarray(scores, np.float64)


def by_words(table: Any, text: str, k: int, expression: Any) -> Found:
    """The best rows by the engine's own BM25."""
    from lancedb import query as queries

    match_query: Any = queries.MatchQuery  # checkers don't see its defaults
    words, limit = " ".join(text.split()), k + MORE
    while True:
        query = table.search(match_query(words, "terms"), query_type="fts")
        if expression is not None:
            query = query.where(expression, prefilter=True)
        rows = query.select(["id", "_score"]).limit(limit).to_arrow()
        scores = rows.column("_score").to_numpy().astype(np.float64)
        # Where the last one is as good as the k-th, others may be too.
        if rows.num_rows < limit or scores[-1] < scores[k - 1] or limit > k + MAX_EQUAL:
            return best(rows.column("id").to_pylist(), scores, k)
        limit *= 4
