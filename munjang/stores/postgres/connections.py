"""Connections to PostgreSQL: kept while they answer, replaced when they don't; errors of the driver as ours."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection, Error

from munjang.stores.base import StoreError
from munjang.stores.postgres.rows import prepare

SCHEMA_LOCK = 0x6D756E6A616E67  # held by who creates a store or changes its fields


class Connections:
    """A pool of as many connections as there are calls at the same time."""

    def __init__(self, location: str) -> None:
        self.location = location
        self._idle: list[Connection[Any]] = []
        self._lock = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[Connection[Any]]:
        """Lend an idle connection that still answers, or a new one; one that broke is not used again."""
        connection = self._answering() or self._connect()
        try:
            yield connection
        except BaseException:
            if connection.broken or connection.info.transaction_status:
                connection.close()
            raise
        finally:
            if not connection.closed:
                with self._lock:
                    self._idle.append(connection)

    def _answering(self) -> Connection[Any] | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            try:
                connection.execute("")
            except Error:
                connection.close()
            else:
                return connection

    def _connect(self) -> Connection[Any]:
        connection: Connection[Any] = psycopg.connect(self.location, autocommit=True, prepare_threshold=None)
        if connection.info.parameter_status("server_encoding") != "UTF8":
            connection.close()
            raise StoreError("The database does not keep texts as UTF-8: create it with ENCODING 'UTF8'.")
        connection.execute("SET client_encoding TO 'UTF8'")
        if one(connection, "SELECT to_regtype('vector')") is None:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [SCHEMA_LOCK])
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        prepare(connection)
        return connection

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Raise errors of the driver as StoreError. The driver's messages name host and user but no password.

    A connection that is lost while the server commits leaves open whether it did; an upsert can be repeated safely.
    """
    try:
        yield
    except psycopg.Error as error:
        rule = "A call writes everything or nothing."
        raise StoreError(f"PostgreSQL, store {name!r}: {_reason(error)} {rule}") from error


def shown(location: str) -> str:
    """Return an address without user and password."""
    return re.sub(r"(?<=password=)[^&\s]*", "...", re.sub(r"://[^/?#]*@", "://", location))


def _reason(error: Error) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."


def one(connection: Connection[Any], statement: str, values: Sequence[Any] = ()) -> Any:
    """Return the first value of the first row, or None."""
    row = connection.execute(statement, values).fetchone()
    return None if row is None else row[0]
