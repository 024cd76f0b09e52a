"""Columns as one message to Milvus.    N rows, D components.

pymilvus takes a number at a time out of every vector. Its messages are protobuf, in which a column of floats is their
bytes: they are put there as they lie in memory.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from munjang.types import Floats


def upsert_request(collection: str, fields: Mapping[str, tuple[str, Sequence[Any]]], vectors_ND: Floats) -> Any:
    """An UpsertRequest of columns: name -> (kind, values), and the vectors."""
    from pymilvus.grpc_gen import milvus_pb2, schema_pb2

    kinds = schema_pb2.DataType
    types = {"text": kinds.VarChar, "int": kinds.Int64, "bool": kinds.Bool, "json": kinds.JSON}
    places = {"text": "string_data", "int": "long_data", "bool": "bool_data", "json": "json_data"}
    request = milvus_pb2.UpsertRequest(collection_name=collection, num_rows=len(vectors_ND))
    for name, (kind, values) in fields.items():
        column = request.fields_data.add(field_name=name, type=types[kind])
        getattr(column.scalars, places[kind]).data.extend(values)
    column = request.fields_data.add(field_name="vector", type=kinds.FloatVector)
    column.vectors.dim = vectors_ND.shape[1]
    column.vectors.float_vector.MergeFromString(packed_floats(vectors_ND))
    return request


def packed_floats(vectors_ND: Floats) -> bytes:
    """A FloatArray message: field 1, length-delimited, little-endian floats one after the other."""
    data = np.ascontiguousarray(vectors_ND, "<f4").tobytes()
    return b"\x0a" + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow.

    >>> _varint(300)
    b'\\xac\\x02'
    """
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
