"""Rows for the tests of stores."""

from random import Random
from typing import Any

import numpy as np

from munjang.stores.base import Rows, Schema
from munjang.vectors.maxsim import to_int8
from munjang.vectors.similarity import unit
from munjang.vectors.sparse import SparseVectors
from tests.stores.trees import random_row


def make_rows(num_rows: int, schema: Schema, seed: int = 0, prefix: str = "r") -> Rows:
    """Rows with random vectors and metadata; two passages a document."""
    generator, random = np.random.default_rng(seed), Random(seed)
    full = generator.standard_normal((num_rows, schema.dimension)).astype(np.float32)
    vectors: dict[str, Any] = {
        "float32": full,
        "float16": full.astype(np.float16),
        "int8": np.clip(full * 40, -128, 127).astype(np.int8),
        "binary": np.packbits(full > 0, axis=1),
    }
    values = np.maximum(generator.standard_normal((num_rows, schema.sparse_dimension)) - 0.8, 0).astype(np.float32)
    units = [unit(generator.standard_normal((row % 4 + 1, max(schema.token_dimension, 1)))) for row in range(num_rows)]
    tokens = [to_int8(each) if schema.tokens == "int8" else each.astype(schema.tokens) for each in units]
    return Rows(
        [f"{prefix}{row}" for row in range(num_rows)],
        [f"{prefix}document{row // 2}" for row in range(num_rows)],
        [f"text {row} 문장" for row in range(num_rows)],
        [row % 2 * 10 for row in range(num_rows)],
        [row % 2 * 10 + 10 for row in range(num_rows)],
        [random_row(random, schema.fields) for _ in range(num_rows)],
        vectors[schema.vectors],
        full if schema.vectors in ("int8", "binary") else None,
        [f"text {row} 문장" for row in range(num_rows)],
        SparseVectors.of_dense(values) if schema.sparse_dimension else None,
        tokens if schema.token_dimension else None,
    )
