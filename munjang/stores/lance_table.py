"""A LanceDB table and its indexes."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from munjang.errors import MunjangError
from munjang.stores.base import Schema, StoreError
from munjang.stores.lance_folder import Folder, Record

METRICS = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}
INDEX_ROWS = 50_000  # below, reading every row takes some milliseconds
KEY_ROWS = 10_000  # from here on, ids are found by an index


@contextmanager
def engine(what: str) -> Iterator[None]:
    """Whatever the engine raises, as an error of ours."""
    try:
        yield
    except MunjangError:
        raise
    except Exception as error:  # its classes are RuntimeError, ValueError, OSError and more
        message = re.split(r", (?:location: )?/", str(error))[0]  # without the places in its source
        raise StoreError(f"{what}: {message:.300}") from error


def create_table(lancedb: Any, folder: Folder, schema: Schema) -> Record:
    """The table first, then the file that says that the store is there: what dies in between leaves no store."""
    from lancedb.index import FTS

    from munjang.stores.lance_rows import arrow_schema

    record = Record(schema, {name: number for number, name in enumerate(schema.fields)})
    with engine(f"LanceDB can't make a store in {folder.path}"):
        database = lancedb.connect(folder.path)
        if folder.table_path.exists():  # of a run that died in here
            database.drop_table(folder.name)
        table = database.create_table(folder.name, schema=arrow_schema(schema, record.numbers))
        words = FTS(base_tokenizer="whitespace", max_token_length=None, lower_case=False, stem=False)
        words.remove_stop_words = words.ascii_folding = False  # words are cut already
        table.create_index("terms", config=words)
    folder.write(record)
    return record


def missing_indexes(table: Any, record: Record, num_rows: int) -> list[str]:
    """The columns whose indexes pay and are not there, or were trained on less than half of the rows."""
    there = {index.columns[0] for index in table.list_indices()}
    missing = [column for column in ("id", "document_id") if num_rows >= KEY_ROWS and column not in there]
    if num_rows >= INDEX_ROWS and ("vector" not in there or num_rows >= 2 * record.num_trained):
        missing.append("vector")
    return missing


def build_index(table: Any, column: str, schema: Schema, num_rows: int) -> None:
    """One of those; it takes the place of the one before in one step."""
    from lancedb.index import BTree

    table.create_index(column, config=vector_index(schema, num_rows) if column == "vector" else BTree())


def vector_index(schema: Schema, num_rows: int) -> Any:
    """How the vectors are indexed: in partitions, as many as the root of the rows, by RaBitQ's bits or by int8."""
    from lancedb.index import IvfRq, IvfSq

    kind: Any = IvfSq if schema.vectors == "int8" else IvfRq
    num_partitions = partitions(num_rows)
    # A tenth of the work of the engine's own 256 rows a partition and 50 rounds; what those would gain is not measured.
    return kind(METRICS[schema.metric], num_partitions=num_partitions, sample_rate=64, max_iterations=20)


def partitions(num_rows: int) -> int:
    """Of an index over so many rows."""
    return max(round(num_rows**0.5), 1)


def probes(num_rows: int) -> int:
    """Partitions that a search looks into, of an index that was built over so many rows."""
    return max(partitions(num_rows) // 8, 20)
