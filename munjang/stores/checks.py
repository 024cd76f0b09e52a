"""Checks that every engine makes before it touches anything.    N rows, Q queries, D dimensions."""

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np

from munjang.errors import InputError, unknown
from munjang.stores.arrow import Columns
from munjang.stores.base import KINDS, Abilities, NoSuchStore, Rows, Schema
from munjang.stores.beside import check_beside, check_kept, check_number
from munjang.stores.filters import RESERVED, plain_text
from munjang.stores.limits import MAX_FIELDS, MAX_KEYS, MAX_NAME_CHARS
from munjang.types import Floats, Value
from munjang.vectors.similarity import check_vectors

DTYPES = {"float32": np.float32, "float16": np.float16, "int8": np.int8, "binary": np.uint8}
AGREED = ("dimension", "metric", "vectors", "sparse_dimension", "token_dimension", "tokens")  # for good
NAME_BYTES = 24  # that an engine may put in the place of a field's name
NEEDS_FULL = ("int8", "binary")  # vectors that are rescored with full ones, kept beside them


def check_schema(schema: Schema, abilities: Abilities, engine: str) -> None:
    """Refuse what an engine can't store."""
    if schema.vectors not in abilities.vectors:
        raise unknown(f"kind of vectors for {engine}", schema.vectors, abilities.vectors)
    if schema.metric not in abilities.metrics:
        raise unknown(f"metric for {engine}", schema.metric, abilities.metrics)
    if schema.dimension < 1 or schema.dimension > (abilities.max_dimension or math.inf):
        limit = f"1 to {abilities.max_dimension:,}" if abilities.max_dimension else "at least 1"
        raise InputError(f"Vectors in {engine} have {limit} dimensions, not {schema.dimension:,}.")
    if schema.vectors == "binary" and schema.dimension % 8:
        raise InputError(f"Binary vectors come in whole bytes; {schema.dimension} dimensions don't fill them.")
    check_kept(schema, abilities, engine)
    check_fields(schema.fields, {})


def asked(schema: Schema | None, create: bool, location: str) -> Schema:
    """Return the schema to create a store with, where none was found."""
    if schema is None or not create:
        raise NoSuchStore(f"There is no store at {location!r}; create one first.")
    return schema


def agreed(recorded: Schema, given: Schema | None, location: str) -> Schema:
    """Return the schema of a store that was found; a given one has to agree with it, but for fields and facts."""
    for name in AGREED if given is not None else ():
        stored, wanted = getattr(recorded, name), getattr(given, name)
        if stored != wanted:
            raise InputError(
                f"The store at {location!r} has {name} {stored!r}, not {wanted!r}; create another one for that."
            )
    return recorded


def check_fields(fields: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that are new; refuse one that is known with another kind."""
    for name, kind in fields.items():
        if not isinstance(name, str) or not name:
            raise InputError(f"A metadata field needs a name, not {name!r}.")
        plain_text(name, "The name of a metadata field")
        if name in RESERVED:
            raise InputError(f"{name!r} is a column of every row; choose another name for the metadata field.")
        if kind not in KINDS:
            raise unknown(f"kind of the metadata field {name!r}", kind, KINDS)
        if len(name) > MAX_NAME_CHARS:
            raise InputError(
                f"The name of a metadata field has at most {MAX_NAME_CHARS} characters; {name!r:.40} has {len(name):,}."
            )
        if known.get(name, kind) != kind:
            raise InputError(f"The metadata field {name!r} holds {known[name]}; it can't become {kind}.")
    new = {name: kind for name, kind in fields.items() if name not in known}
    if new and len(known) + len(new) > MAX_FIELDS:
        raise InputError(
            f"An index has at most {MAX_FIELDS} metadata fields; it has {len(known):,} and {len(new):,} more are given "
            f"({next(iter(new))!r:.40}, ...). Keep what nobody filters by in one field, as text."
        )
    return new


def check_rows(rows: Rows, schema: Schema, abilities: Abilities) -> None:
    """Refuse rows that don't fit the schema; the message names the first one that doesn't."""
    columns = {"document_ids": rows.document_ids, "texts": rows.texts, "starts": rows.starts, "ends": rows.ends}
    columns |= {"metadata": rows.metadata} | ({"terms": rows.terms} if rows.terms is not None else {})
    for name, column in columns.items():
        if len(column) != len(rows):
            raise InputError(f"There are {len(rows):,} ids but {len(column):,} {name}.")
    seen: set[str] = set()
    for row_id, document_id, text in zip(rows.ids, rows.document_ids, rows.texts, strict=True):
        if not isinstance(row_id, str) or not row_id or not isinstance(document_id, str) or not document_id:
            raise InputError(f"Ids must be non-empty strings, not {row_id!r} of document {document_id!r}.")
        for what, given in (("The id of a row", row_id), ("The id of a document", document_id)):
            _check_size(len(plain_text(given, what).encode()), abilities.max_id_bytes, f"{what}, {given!r:.40},")
        if row_id in seen:
            raise InputError(f"The id {row_id!r} occurs twice among the rows.")
        seen.add(row_id)
        what = f"The text of {row_id!r:.40}"
        _check_size(len(plain_text(text, what).encode()), abilities.max_text_bytes, what)
    for row_id, metadata in zip(rows.ids, rows.metadata, strict=True):
        check_keys(metadata, row_id)
        for name, value in metadata.items():
            if name not in schema.fields:
                raise unknown(f"metadata field of {row_id!r}:", name, schema.fields)
            check_value(value, name, schema.fields[name], row_id)
        if abilities.max_metadata_bytes is not None:
            size = len(json.dumps(dict(metadata), ensure_ascii=False).encode()) + NAME_BYTES * len(metadata)
            _check_size(size, abilities.max_metadata_bytes, f"The metadata of {row_id!r:.40}")
    _check_row_vectors(rows, schema)
    check_beside(rows, schema)


def _check_size(num_bytes: int, limit: int | None, what: str) -> None:
    if limit is not None and num_bytes > limit:
        raise InputError(f"{what} has {num_bytes:,} bytes; at most {limit:,} fit.")


def check_keys(metadata: Mapping[str, Value], which: str) -> None:
    """Refuse metadata with too many keys."""
    if len(metadata) > MAX_KEYS:
        raise InputError(f"A document has at most {MAX_KEYS} metadata keys; {which!r:.40} has {len(metadata):,}.")


def check_value(value: Value, name: str, kind: str, row_id: str) -> None:
    fits = {
        "text": isinstance(value, str),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, (int, float)) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
    }
    if value is None:
        return
    if not fits[kind]:
        raise InputError(f"{name!r} of {row_id!r} should be {kind}, not {value!r:.60}.")
    if isinstance(value, str):
        plain_text(value, f"{name!r} of {row_id!r}")
    elif not math.isfinite(value) or (kind == "int" and not -(2**63) <= value < 2**63):
        raise InputError(f"{name!r} of {row_id!r} is {value!r:.40}; leave it out or give a number of 64 bits.")


def _check_row_vectors(rows: Rows, schema: Schema) -> None:
    if rows.vectors is None:
        raise InputError("Rows to add need vectors.")
    is_binary = schema.vectors == "binary"
    shape = (len(rows), schema.dimension // 8 if is_binary else schema.dimension)
    dtype = np.dtype(DTYPES[schema.vectors])
    if rows.vectors.shape != shape or rows.vectors.dtype != dtype:
        given = f"{rows.vectors.dtype} {list(rows.vectors.shape)}"
        raise InputError(f"The store holds vectors {dtype} {list(shape)}, {schema.vectors}; given are {given}.")
    _check_finite(rows.ids, rows.vectors)
    if schema.vectors in NEEDS_FULL:
        full = rows.full_vectors
        if full is None or full.shape != (len(rows), schema.dimension) or full.dtype != np.float32:
            raise InputError(
                f"{schema.vectors} vectors need full_vectors beside them: float32, of dimension {schema.dimension}."
            )
        _check_finite(rows.ids, full)


def _check_finite(ids: Sequence[str], vectors: np.ndarray) -> None:
    if vectors.dtype.kind == "f" and not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(1))[0])
        raise InputError(f"The vector of {ids[row]!r} holds NaN or infinity.")


def check_queries(queries_QD: Floats, schema: Schema, k: int) -> Floats:
    """Return queries as a finite float32 matrix of the store's dimension."""
    checked = (
        check_vectors(queries_QD, "queries") if np.size(queries_QD) else np.zeros((0, schema.dimension), np.float32)
    )
    if checked.shape[1] != schema.dimension:
        raise InputError(f"The store's vectors have {schema.dimension} dimensions, the queries {checked.shape[1]}.")
    check_number(k)
    return checked


def check_columns(columns: Columns, schema: Schema, max_text_bytes: int | None = None) -> None:
    """Refuse columns that don't fit the schema, or texts that the engine can't keep."""
    import pyarrow.compute as pc

    if schema.sparse_dimension or schema.token_dimension:
        raise InputError("This store keeps sparse or token vectors too, which columns don't have; add texts instead.")
    width = schema.dimension // 8 if schema.vectors == "binary" else schema.dimension
    wanted = ((len(columns), width), np.dtype(DTYPES[schema.vectors]))
    if (columns.vectors.shape, columns.vectors.dtype) != wanted:
        given = f"{columns.vectors.dtype} {list(columns.vectors.shape)}"
        raise InputError(f"The store holds vectors {wanted[1]} {list(wanted[0])}; given are {given}.")
    full = columns.full_vectors if schema.vectors in NEEDS_FULL else columns.vectors
    if full is None or full.shape != (len(columns), schema.dimension):
        raise InputError(f"{schema.vectors} vectors need full ones beside them, of dimension {schema.dimension}.")
    if not np.isfinite(full).all():
        row = int(np.flatnonzero(~np.isfinite(full).all(1))[0])
        raise InputError(f"The vector of {columns.document_ids[row].as_py()!r} holds NaN or infinity.")
    if pc.count_distinct(columns.document_ids).as_py() != len(columns):
        raise InputError("An id occurs twice among the rows.")
    for name, column in (("id", columns.document_ids), ("text", columns.texts)):
        if column.null_count or pc.any(pc.match_substring(column, "\0")).as_py():
            raise InputError(f"A row has no {name}, or one with a NUL character in it.")
    if pc.any(pc.equal(pc.binary_length(columns.document_ids), 0)).as_py():
        raise InputError("Ids must be non-empty strings.")
    for name, column in (("id", columns.ids), ("text", columns.texts)) if max_text_bytes is not None else ():
        sizes = pc.binary_length(column).to_numpy(zero_copy_only=False)
        if len(sizes) and sizes.max() > max_text_bytes:
            row = int(sizes.argmax())
            which = columns.document_ids[row].as_py()
            raise InputError(f"The {name} of {which!r:.40} has {sizes[row]:,} bytes; at most {max_text_bytes:,} fit.")
