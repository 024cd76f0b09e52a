"""pymilvus, from 2.3 to 3, in the few calls that a store makes; its errors as ours.    N rows, D dimensions."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pymilvus
from pymilvus.exceptions import MilvusException

from munjang.stores.base import StoreError
from munjang.stores.milvus.filters import quoted
from munjang.types import Floats

MAX_TEXT_BYTES = 65_535  # of a VARCHAR
MAX_ANSWER_ROWS = 16_384
TIMEOUT = {"timeout": 30}  # seconds, an integer: pymilvus 2.3 ignores any other limit and retries for minutes
STRONG: dict[str, Any] = {"consistency_level": "Strong", **TIMEOUT}
HNSW_SETTINGS = {"M": 16, "efConstruction": 200}
UNLOADED_ERRORS = ("not loaded", "in state 'released'")  # of a server; of milvus-lite


class Client:
    """One connection, for any number of threads."""

    def __init__(self, address: str) -> None:
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs errors with tracebacks, then raises them
        try:
            with _explained():
                self._client: Any = pymilvus.MilvusClient(uri=address, timeout=10)
        except StoreError as error:
            if address.startswith("http"):
                raise
            reason = "another process has it open, or it is damaged"
            raise StoreError(f"The folder {address!r} can't be opened: {reason} ({error}).") from error

    @property
    def version(self) -> str:
        """Return the version of the server."""
        with _explained():
            if hasattr(self._client, "get_server_version"):
                return str(self._client.get_server_version())
            return str(pymilvus.utility.get_server_version(using=self._client._using))

    def has(self, collection: str) -> bool:
        with _explained():
            return bool(self._client.has_collection(collection, **TIMEOUT))

    def make(
        self, collection: str, fields: Mapping[str, str], dimension: int, metric: str, has_sparse: bool = False
    ) -> None:
        """Create a collection with a vector beside these fields, the first of which is its key, unless it exists."""
        if self.has(collection):
            return
        kinds = pymilvus.DataType
        types = {"text": kinds.VARCHAR, "int": kinds.INT64, "json": kinds.JSON, "bool": kinds.BOOL}
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        for number, (name, kind) in enumerate(fields.items()):
            sizes = {"max_length": MAX_TEXT_BYTES} if kind == "text" else {}
            schema.add_field(name, types[kind], is_primary=number == 0, **sizes)
        schema.add_field("vector", kinds.FLOAT_VECTOR, dim=dimension)
        if has_sparse:
            if not hasattr(kinds, "SPARSE_FLOAT_VECTOR"):
                raise StoreError("Sparse vectors need Milvus and pymilvus 2.4 or newer.")
            schema.add_field("sparse", kinds.SPARSE_FLOAT_VECTOR)
        with _explained():
            # One shard, so that one write is one message of its log
            self._client.create_collection(collection, schema=schema, consistency_level="Strong", shards_num=1)
            settings = self._index("FLAT", metric, {})
            if has_sparse:
                settings.add_index("sparse", index_type="SPARSE_INVERTED_INDEX", metric_type="IP", params={})
            self._client.create_index(collection, settings, sync=False)  # there is nothing in it
            self._client.load_collection(collection)

    def _index(self, kind: str, metric: str, params: Mapping[str, int]) -> Any:
        settings = self._client.prepare_index_params()
        settings.add_index("vector", index_type=kind, metric_type=metric, params=dict(params))
        return settings

    def upsert(self, collection: str, records: list[dict[str, Any]]) -> None:
        if records:
            with _explained():
                self._client.upsert(collection, records, **TIMEOUT)

    def upsert_columns(
        self, collection: str, fields: Mapping[str, tuple[str, Sequence[Any]]], vectors_ND: Floats
    ) -> None:
        """Upsert by columns; pymilvus itself would look at every number."""
        from pymilvus.client.utils import check_status

        with _explained():
            answer = self._client._get_connection()._stub.Upsert(
                upsert_request(collection, fields, vectors_ND), **TIMEOUT
            )
            check_status(answer.status)

    def delete(self, collection: str, test: str) -> None:
        with _explained():
            self._client.delete(collection, filter=test, **TIMEOUT)

    def query(self, collection: str, test: str, columns: list[str]) -> list[dict[str, Any]]:
        """Return the rows for which a test holds; as many as fit into one answer."""
        return self._loaded(
            collection,
            lambda: list(self._client.query(collection, filter=test, output_fields=columns, **STRONG)),
        )

    def _loaded(self, collection: str, read: Callable[[], list[Any]]) -> list[Any]:
        """Read; what was killed and started again has to be told to load a collection first."""
        try:
            with _explained():
                return read()
        except StoreError as error:
            if not any(text in str(error) for text in UNLOADED_ERRORS):
                raise
        with _explained():
            self._client.load_collection(collection, **TIMEOUT)
            return read()

    def _page(self, collection: str, test: str, columns: list[str], size: int, last: str) -> list[dict[str, Any]]:
        rest = f"({test}) and (id > {quoted(last)})"
        # `iterator`: rows come in the order of their keys, the smallest first, as for pymilvus' own iterator
        options = {"output_fields": columns, "limit": size, "iterator": "True", **STRONG}
        return list(self._client.query(collection, filter=rest, **options))

    def pages(self, collection: str, test: str, columns: list[str], size: int) -> Iterator[list[dict[str, Any]]]:
        """Return all rows for which a test holds, page by page in the order of their ids."""
        last = ""
        while True:
            found = self._loaded(collection, partial(self._page, collection, test, columns, size, last))
            if found:
                yield found
                last = max(row["id"] for row in found)
            if len(found) < size:
                return

    def search(
        self,
        collection: str,
        queries: Sequence[Any],
        number: int,
        test: str,
        metric: str,
        field: str = "vector",
        is_only: bool = True,
    ) -> list[list[dict[str, Any]]]:
        """Find the nearest rows of each query, with their vectors. `is_only`: there are vectors of no other field."""
        which = {} if is_only else {"anns_field": field}  # pymilvus 2.3 takes none
        params = {"metric_type": metric, "params": {"ef": max(number, 64)}}
        found = self._loaded(
            collection,
            lambda: self._client.search(
                collection,
                data=list(queries),
                filter=test,
                limit=number,
                output_fields=[field],
                search_params=params,
                **which,
                **STRONG,
            ),
        )
        return [list(hits) for hits in found]

    def index(self, collection: str) -> str:
        with _explained():
            return str(self._client.describe_index(collection, "vector", **TIMEOUT)["index_type"])

    def tidy(self, collection: str) -> None:
        """Write out what is in memory; merging is the server's own business after that."""
        with _explained():
            if hasattr(self._client, "flush"):
                self._client.flush(collection, **TIMEOUT)
            else:
                self._client._get_connection().flush([collection], **TIMEOUT)

    def build(self, collection: str, metric: str) -> None:
        """Build a graph instead of comparing all. The collection can't be searched meanwhile."""
        with _explained():
            self._client.release_collection(collection)
            self._client.drop_index(collection, "vector")
            self._client.create_index(collection, self._index("HNSW", metric, HNSW_SETTINGS))
            self._client.load_collection(collection)

    def close(self) -> None:
        with _explained():
            self._client.close()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except MilvusException as error:
        raise StoreError(f"Milvus: {' '.join(str(error.message or error).split())[:500]}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "grpc":
            raise
        raise StoreError(f"Milvus does not answer: {' '.join(str(error).split())[:300]}") from error


def upsert_request(collection: str, fields: Mapping[str, tuple[str, Sequence[Any]]], vectors_ND: Floats) -> Any:
    """Make an UpsertRequest of columns, name -> (kind, values), and the vectors.

    pymilvus takes a number at a time out of every vector. Its messages are protobuf, in which a column of floats is
    their bytes: they are put there as they lie in memory.
    """
    from pymilvus.grpc_gen import milvus_pb2, schema_pb2

    kinds = schema_pb2.DataType
    types = {"text": kinds.VarChar, "int": kinds.Int64, "bool": kinds.Bool, "json": kinds.JSON}
    attributes = {"text": "string_data", "int": "long_data", "bool": "bool_data", "json": "json_data"}
    request = milvus_pb2.UpsertRequest(collection_name=collection, num_rows=len(vectors_ND))
    for name, (kind, values) in fields.items():
        column = request.fields_data.add(field_name=name, type=types[kind])
        getattr(column.scalars, attributes[kind]).data.extend(values)
    column = request.fields_data.add(field_name="vector", type=kinds.FloatVector)
    column.vectors.dim = vectors_ND.shape[1]
    column.vectors.float_vector.MergeFromString(packed_floats(vectors_ND))
    return request


def packed_floats(vectors_ND: Floats) -> bytes:
    """Encode a FloatArray message: field 1, length-delimited, little-endian floats one after the other."""
    data = np.ascontiguousarray(vectors_ND, "<f4").tobytes()
    return b"\x0a" + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Encode seven bits a byte, the lowest first; the eighth says that more follow.

    >>> _varint(300)
    b'\\xac\\x02'
    """
    low_bytes = bytearray()
    while number > 0x7F:
        low_bytes.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low_bytes, number])
