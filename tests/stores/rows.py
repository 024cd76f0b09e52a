"""Rows for the tests of stores."""

from random import Random
from typing import Any

import numpy as np

from munjang.stores.base import Rows, Schema
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
    )
