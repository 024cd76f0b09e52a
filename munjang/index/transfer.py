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
from munjang.index.documents import new_fields
from munjang.index.index import BATCH_DOCUMENTS, Index
from munjang.index.schema import schema_of, stored_vectors
from munjang.index.words import document_terms
from munjang.progress import Progress
from munjang.stores import open_store
from munjang.stores.base import NoSuchStore, Rows
from munjang.types import Floats

FILE_KIND = "munjang index 1"


def export_rows(index: Index, path: Path, progress: bool | None = None) -> int:
    """Write every row to a file that appears whole or not at all; return the number of rows."""
    number = 0
    with replacing(path) as raw, Progress(index.count(), "exporting", progress) as bar:
        packed = gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) if path.suffix == ".gz" else raw
        file = io.TextIOWrapper(packed, encoding="ascii", newline="\n")
        facts = {key: index.store.schema.facts[key] for key in ("model", "fingerprint")}
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


def check_file(path: Path, fingerprint: str) -> None:
    """Refuse a file that `export_rows` did not write, or with vectors of another model, by its first line."""
    head = _record(path, *next(read_lines(path), (1, "")))
    if head.get("kind") != FILE_KIND or not isinstance(head.get("fingerprint"), str):
        raise InputError(f"{path} was not written by `munjang index export`.")
    if head["fingerprint"] != fingerprint:
        raise InputError(
            f"{path} holds vectors of {head.get('model')}, another model than this index's; add its texts instead."
        )


def import_rows(index: Index, path: Path, progress: bool | None = None) -> int:
    """Import the rows of a file that an index of the same model wrote; existing rows are replaced."""
    check_file(path, index.store.schema.facts["fingerprint"])
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
            index.extend(rows, new_fields(rows.metadata, index.store.schema.fields))
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
    location: str, model: BiEncoder, model_name: str | None, name: str = "default", progress: bool | None = None
) -> int:
    """Compute all vectors of an index anew with another model, beside the old ones, and switch when all are stored.

    Until then searches use the old ones. Resumes a stopped run with the rows that are missing. Returns their number.
    """
    old = Index.open_store(location, name)
    if old.schema.facts["fingerprint"] == model.fingerprint:
        raise InputError(f"{location} has this model's vectors already.")
    target = _next_name(old.schema.facts.get("generation", 0), name)
    schema = schema_of(model, old.schema.vectors, old.schema.facts["chunk"], model_name or model.model.folder)
    facts = {**schema.facts, "generation": old.schema.facts.get("generation", 0) + 1}
    facts |= {name: old.schema.facts[name] for name in ("synonyms",) if name in old.schema.facts}
    schema = replace(schema, fields=dict(old.schema.fields), facts=facts)
    try:
        new = open_store(location, None, False, target)
        if new.schema.facts["fingerprint"] != model.fingerprint:
            raise InputError(f"Another model was begun before: {new.schema.facts['model']}. Finish that first.")
    except NoSuchStore:
        new = open_store(location, schema, True, target)
    number = 0
    with Progress(old.count(), "embedding", progress) as bar:
        for rows in old.scan(BATCH_DOCUMENTS, with_vectors=False):
            known = set(new.get(rows.ids).ids)
            missing = [row for row, id in enumerate(rows.ids) if id not in known]
            if missing:
                new.upsert(_reencoded(rows, missing, model, new.schema, new.abilities.has_terms))
            number += len(missing)
            bar.advance(len(rows))
    old.put_facts({**old.schema.facts, "moved_to": target})
    new.close()
    old.close()
    return number


def _next_name(generation: int, name: str) -> str:
    return f"{name.split('~')[0]}~{generation + 1}"


def _reencoded(rows: Rows, keep: list[int], model: BiEncoder, schema: Any, has_terms: bool) -> Rows:
    texts = [rows.texts[at] for at in keep]
    stored, full = stored_vectors(model.encode_document(texts, progress=False), schema)
    columns = ([column[at] for at in keep] for column in (rows.ids, rows.document_ids, rows.starts, rows.ends))
    ids, documents, starts, ends = columns
    metadata = [rows.metadata[at] for at in keep]
    words = document_terms(texts, schema.facts) if has_terms else None
    return Rows(ids, documents, texts, starts, ends, metadata, stored, full, words)  # type: ignore[arg-type]


def _lines(rows: Rows) -> Iterator[dict[str, Any]]:
    vectors = rows.full_vectors if rows.full_vectors is not None else rows.vectors
    assert vectors is not None
    for at, id in enumerate(rows.ids):
        packed = base64.b64encode(np.ascontiguousarray(vectors[at], "<f4").tobytes()).decode()
        yield {
            "id": id,
            "document_id": rows.document_ids[at],
            "text": rows.texts[at],
            "start": rows.starts[at],
            "end": rows.ends[at],
            "metadata": dict(rows.metadata[at]),
            "vector": packed,
        }


def _rows(index: Index, lines: Sequence[Mapping[str, Any]]) -> Rows:
    vectors = [np.frombuffer(base64.b64decode(line["vector"]), "<f4") for line in lines]
    full: Floats = np.stack(vectors).astype(np.float32)
    stored, beside = stored_vectors(full, index.store.schema)
    texts = [line["text"] for line in lines]
    ids, documents, starts, ends, metadata = (
        [line[key] for line in lines] for key in ("id", "document_id", "start", "end", "metadata")
    )
    words = document_terms(texts, index.store.schema.facts) if index.store.abilities.has_terms else None
    return Rows(ids, documents, texts, starts, ends, metadata, stored, beside, words)
