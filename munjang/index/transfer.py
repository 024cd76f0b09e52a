"""Exporting an index to a file and importing it, rows with vectors; computing vectors anew with another model.

A file is .jsonl (also .gz): a first line that describes it, then an object a row.
"""

import base64
import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.data.files import read_lines, replacing
from munjang.errors import InputError
from munjang.index.cutting import read_texts
from munjang.index.documents import new_fields
from munjang.index.encoders import Encoders, load
from munjang.index.index import Index
from munjang.index.schema import PASSAGE_DEFAULTS, schema_of, stored_vectors
from munjang.index.words import document_terms
from munjang.index.writing import BATCH_DOCUMENTS, make_room
from munjang.progress import Progress
from munjang.stores import open_store
from munjang.stores.base import NoSuchStore, Rows, Schema
from munjang.stores.beside import sparse_bytes, sparse_of, token_bytes, tokens_of
from munjang.types import Floats

FILE_KIND = "munjang index 1"


def export_rows(index: Index, path: Path, progress: bool | None = None) -> int:
    """Write every row to a file that appears whole or not at all; return the number of rows."""
    number = 0
    with replacing(path) as raw, Progress(index.count(), "exporting", progress) as bar:
        packed = gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) if path.suffix == ".gz" else raw
        file = io.TextIOWrapper(packed, encoding="ascii", newline="\n")
        recorded = index.store.schema.facts
        facts = {key: recorded[key] for key in ("model", "fingerprint", "beside") if key in recorded}
        if index.store.schema.token_dimension:
            facts["tokens"] = index.store.schema.tokens
        head = {"kind": FILE_KIND, "dimension": index.store.schema.dimension, **facts}
        file.write(json.dumps(head) + "\n")
        for rows in index.store.scan(BATCH_DOCUMENTS):
            for line in _lines(rows):
                file.write(json.dumps(line) + "\n")
            number += len(rows)
            bar.advance(len(rows))
        file.detach()  # flushes, and leaves closing to its owner
        if packed is not raw:
            packed.close()
    return number


def check_file(path: Path, schema: Schema) -> None:
    """Refuse a file that `export_rows` did not write, or with vectors of other models, by its first line."""
    fingerprint = schema.facts["fingerprint"]
    head = _record(path, *next(read_lines(path), (1, "")))
    if head.get("kind") != FILE_KIND or not isinstance(head.get("fingerprint"), str):
        raise InputError(f"{path} was not written by `munjang index export`.")
    if head["fingerprint"] != fingerprint:
        raise InputError(
            f"{path} holds vectors of {head.get('model')}, another model than this index's; add its texts instead."
        )
    own, given = schema.facts.get("beside", {}), head.get("beside") or {}
    for way in ("sparse", "late"):
        if way in own and (given.get(way) or {}).get("fingerprint") != own[way]["fingerprint"]:
            raise InputError(f"{path} has no {way} vectors of {own[way]['model']}; add its texts instead.")
    if "late" in own and head.get("tokens") != schema.tokens:
        raise InputError(f"{path} has token vectors as {head.get('tokens')}, this index as {schema.tokens}.")


def import_rows(index: Index, path: Path, progress: bool | None = None) -> int:
    """Import the rows of a file that an index of the same model wrote; existing rows are replaced."""
    check_file(path, index.store.schema)
    lines = islice(((number, line) for number, line in read_lines(path) if line.strip()), 1, None)
    number = 0
    with Progress(label="importing", enabled=progress) as bar:
        while batch := list(islice(lines, BATCH_DOCUMENTS)):
            records = [_record(path, *line) for line in batch]
            try:
                rows = _rows(index, records)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                where = f"{path}, lines {batch[0][0]} to {batch[-1][0]}"
                raise InputError(f"{where}: not rows that `munjang index export` writes ({error!r:.80}).") from error
            rows = make_room(index.store, rows, new_fields(rows.metadata, index.store.schema.fields))
            index.store.upsert(rows)
            number += len(rows)
            bar.advance(len(rows))
    return number


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InputError(f"{path}, line {number}: not a JSON object, as `munjang index export` writes them.")
    return record


def reembed(
    location: str,
    model: BiEncoder,
    model_name: str | None,
    name: str = "default",
    progress: bool | None = None,
    sparse: Any = None,
    late: Any = None,
) -> int:
    """Compute all vectors of an index anew with another model, beside the old ones, and switch when all are stored.

    `sparse`, `late`: models whose vectors are added or take the place of those there; others are kept. Until all are
    stored searches use the old ones. Resumes a stopped run with the rows that are missing. Returns their number.
    """
    old = Index.open_store(location, name)
    before = old.schema.facts
    if before.get("late_chunking"):
        raise InputError(f"{location} was made with late_chunking, which reads whole documents; build it anew.")
    encoders = _new_encoders(old.schema, model, sparse, late)
    target = _next_name(before.get("generation", 0), name)
    options = {key: before[key] for key in PASSAGE_DEFAULTS if key in before}
    names = {"sparse": sparse, "late": late} | {
        way: stated["model"]
        for way, stated in before.get("beside", {}).items()
        if way in ("sparse", "late") and (sparse if way == "sparse" else late) is None
    }
    schema = schema_of(
        encoders, old.schema.vectors, before["chunk"], model_name or model.model.folder, {**options, **names}
    )
    facts = {**schema.facts, "generation": before.get("generation", 0) + 1}
    if _stated(schema.facts) == _stated(before):
        raise InputError(f"{location} has this model's vectors already.")
    facts |= {key: before[key] for key in ("synonyms",) if key in before}
    schema = replace(schema, fields=dict(old.schema.fields), facts=facts)
    try:
        new = open_store(location, None, False, target)
        if _stated(new.schema.facts) != _stated(facts):
            raise InputError(f"Another model was begun before: {new.schema.facts['model']}. Finish that first.")
    except NoSuchStore:
        new = open_store(location, schema, True, target)
    number = 0
    with Progress(old.count(), "embedding", progress) as bar:
        for rows in old.scan(BATCH_DOCUMENTS, with_vectors=False):
            known = set(new.get(rows.ids).ids)
            missing = [row for row, id in enumerate(rows.ids) if id not in known]
            if missing:
                new.upsert(_reencoded(_taken(rows, missing), encoders, new.schema, new.abilities.has_terms))
            number += len(missing)
            bar.advance(len(rows))
    old.put_facts({**old.schema.facts, "moved_to": target})
    new.close()
    old.close()
    return number


def _new_encoders(schema: Schema, model: BiEncoder, sparse: Any, late: Any) -> Encoders:
    """Return the models to encode with: those given, else those that the index has."""
    stated, device = schema.facts.get("beside", {}), str(model.device)
    sparse = stated.get("sparse", {}).get("model") if sparse is None else sparse
    late = stated.get("late", {}).get("model") if late is None else late
    tokens = schema.tokens if schema.token_dimension else None
    return Encoders.new(
        model, load("sparse", sparse, device), load("late", late, device), tokens, stated.get("pool_factor")
    )


def _stated(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprints of all models that an index recorded."""
    beside = {way: each["fingerprint"] for way, each in facts.get("beside", {}).items() if isinstance(each, dict)}
    return {"dense": facts["fingerprint"], **beside}


def _next_name(generation: int, name: str) -> str:
    return f"{name.split('~')[0]}~{generation + 1}"


def _taken(rows: Rows, places: Sequence[int]) -> Rows:
    columns = (rows.ids, rows.document_ids, rows.texts, rows.starts, rows.ends, rows.metadata)
    return Rows(*([column[at] for at in places] for column in columns))  # type: ignore[arg-type]


def _reencoded(rows: Rows, encoders: Encoders, schema: Schema, has_terms: bool) -> Rows:
    texts = read_texts(rows.texts, rows.metadata, schema)
    vectors_ND, beside = encoders.document(texts)
    stored, full = stored_vectors(vectors_ND, schema)
    words = document_terms(texts, schema.facts) if has_terms else None
    return replace(rows, vectors=stored, full_vectors=full, terms=words, **beside)


def _lines(rows: Rows) -> Iterator[dict[str, Any]]:
    vectors = rows.full_vectors if rows.full_vectors is not None else rows.vectors
    assert vectors is not None
    sparse = None if rows.sparse is None else sparse_bytes(rows.sparse)
    tokens = None if rows.tokens is None else token_bytes(rows.tokens)
    for at, id in enumerate(rows.ids):
        packed = _packed(np.ascontiguousarray(vectors[at], "<f4").tobytes())
        beside = {} if sparse is None else {"sparse": _packed(sparse[at])}
        beside |= {} if tokens is None else {"tokens": _packed(tokens[at])}
        yield {
            "id": id,
            "document_id": rows.document_ids[at],
            "text": rows.texts[at],
            "start": rows.starts[at],
            "end": rows.ends[at],
            "metadata": dict(rows.metadata[at]),
            "vector": packed,
            **beside,
        }


def _packed(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _rows(index: Index, lines: Sequence[Mapping[str, Any]]) -> Rows:
    schema = index.store.schema
    vectors = [np.frombuffer(base64.b64decode(line["vector"]), "<f4") for line in lines]
    full: Floats = np.stack(vectors).astype(np.float32)
    stored, beside = stored_vectors(full, schema)
    keys = ("id", "document_id", "text", "start", "end", "metadata")
    ids, documents, texts, starts, ends, metadata = ([line[key] for line in lines] for key in keys)
    rows = Rows(ids, documents, texts, starts, ends, metadata, stored, beside)
    if index.store.abilities.has_terms:
        rows = replace(rows, terms=document_terms(read_texts(texts, metadata, schema), schema.facts))
    if schema.sparse_dimension:
        values = [base64.b64decode(line["sparse"]) for line in lines]
        rows = replace(rows, sparse=sparse_of(values, schema.sparse_dimension))
    if schema.token_dimension:
        rows = replace(rows, tokens=tokens_of([base64.b64decode(line["tokens"]) for line in lines], schema))
    return rows
