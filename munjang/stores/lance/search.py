"""Searching a LanceDB table by vectors and by words, under filters.    C candidates, D dimensions.

Filters become expressions of `col` and `lit` only, so that no value is ever part of a text that is parsed. Expressions
know neither `is null` nor `like`: every field has a column of truth values beside it that says whether the row has it,
and a prefix is a range from the prefix itself to the first text after all that begin with it.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from lancedb import query as queries
from lancedb.expr import col, lit

from munjang.stores.base import Found, Schema
from munjang.stores.filters import (
    COMPARISONS,
    RESERVED,
    And,
    Compare,
    Filter,
    In,
    IsNull,
    Like,
    Not,
    Or,
    after_prefix,
    balanced,
)
from munjang.stores.lance.rows import matrix
from munjang.stores.lance.table import METRICS
from munjang.stores.scoring import best
from munjang.types import Doubles, Floats
from munjang.vectors.nearest import kth_best
from munjang.vectors.similarity import PAIRWISE

SLACK, HALF_SLACK = 1e-5, 1e-2  # distances of the engine and scores of ours differ by rounding
OVERSAMPLE, MIN_CANDIDATES = 2, 100  # of an index, for rescoring: 50 found 0.933 of a million rows' ten best
NUM_BEYOND_K = 8  # rows that are read: mostly enough to see that the next one is further away
MAX_EQUAL_ROWS = 20_000  # that are read to find those of equal scores with the smallest ids
NUM_ATTEMPTS = 3  # others may move rows between finding and reading them


@dataclass(frozen=True)
class Nearest:
    """Finds the nearest rows of one query among those that fit the expression. No probes: there is no index."""

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
        """Find rows whose cosine is 0 because one side is the zero vector; the engine leaves them out."""
        chosen = col(column) == lit(True)
        where = chosen if self.expression is None else self.expression & chosen
        rows = self.table.search().where(where).select(["id"]).to_arrow()
        return best(rows.column("id").to_pylist(), np.zeros(rows.num_rows), k)

    def by_reading(self, query_D: Floats, k: int) -> Found:
        """Search exactly. More is read where rows that were left out may be as close as the last one."""
        limit = k + NUM_BEYOND_K
        slack = HALF_SLACK if self.schema.vectors == "float16" else SLACK
        while True:
            rows = self.candidates(query_D, limit, ["id", "vector", "_distance"]).bypass_vector_index().to_arrow()
            found = best(rows.column("id").to_pylist(), self.scores(query_D, rows), k)
            if rows.num_rows < limit or limit > k + MAX_EQUAL_ROWS:
                return found
            furthest = rows.column("_distance")[-1].as_py()
            worst = -math.sqrt(furthest) if self.schema.metric == "euclidean" else 1 - furthest
            if found.scores[-1] > worst + slack * (1 + abs(worst)):
                return found
            limit *= 4

    def by_index(self, query_D: Floats, k: int) -> Found | None:
        """Search by the index; None where it gives too few candidates: few rows fit, and reading finds them."""
        limit = max(OVERSAMPLE * k, MIN_CANDIDATES)
        for _ in range(NUM_ATTEMPTS):
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
        """Return scores in full precision."""
        vectors_CD = np.ascontiguousarray(matrix(rows.column("vector"), self.schema.dimension), np.float32)
        scores = PAIRWISE[self.schema.metric](np.broadcast_to(query_D, vectors_CD.shape), vectors_CD)
        return np.asarray(scores, np.float64)


def by_words(table: Any, text: str, k: int, expression: Any) -> Found:
    """Find the best rows by the engine's own BM25."""
    match_query: Any = queries.MatchQuery  # checkers don't see its defaults
    words, limit = " ".join(text.split()), k + NUM_BEYOND_K
    while True:
        query = table.search(match_query(words, "terms"), query_type="fts")
        if expression is not None:
            query = query.where(expression, prefilter=True)
        rows = query.select(["id", "_score"]).limit(limit).to_arrow()
        scores = rows.column("_score").to_numpy().astype(np.float64)
        # Where the last one is as good as the k-th, others may be too.
        if rows.num_rows < limit or scores[-1] < scores[k - 1] or limit > k + MAX_EQUAL_ROWS:
            return best(rows.column("id").to_pylist(), scores, k)
        limit *= 4


def expression(node: Filter, numbers: Mapping[str, int], kinds: Mapping[str, str]) -> Any:
    """Compile a checked filter to a lancedb.expr.Expr; `numbers` are those of the fields' columns."""

    def column(name: str) -> Any:
        return col(name if name in RESERVED else f"field_{numbers[name]}")

    def compiled(node: Filter) -> Any:
        match node:
            case And(parts):
                return reduce(operator.and_, map(compiled, parts))
            case Or(parts):
                return reduce(operator.or_, map(compiled, parts))
            case Not(part):
                return ~compiled(part)
            case IsNull(name):
                return col("has_id" if name in RESERVED else f"has_{numbers[name]}") == lit(False)
            case In(name, values):
                return listed(name, values)
            case Compare(name, op, value):
                return compared(name, op, value)
            case Like(name, prefix):
                starts, end = column(name) >= lit(prefix), after_prefix(prefix)
                return starts if end is None else starts & (column(name) < lit(end))

    def compared(name: str, op: str, value: Any) -> Any:
        kind = kinds.get(name, "text")
        operand = column(name).cast("float64") if kind == "int" and isinstance(value, float) else column(name)
        return COMPARISONS[op](operand, lit(float(value) + 0.0 if kind == "float" else value))

    def listed(name: str, values: tuple[Any, ...]) -> Any:
        kind = kinds.get(name, "text")
        if kind == "int" and any(isinstance(value, float) for value in values):
            return compiled(balanced(Or(tuple(Compare(name, "=", value) for value in values))))
        return column(name).isin([lit(float(value) + 0.0 if kind == "float" else value) for value in values])

    return compiled(balanced(node))  # 900 tests in a row would overflow the stack of the engine's threads
