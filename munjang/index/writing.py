"""Write documents into a store: in batches, without gaps while they are replaced, with room for new fields."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from munjang.data.documents import Section
from munjang.errors import InputError
from munjang.index.context import FIELD
from munjang.index.cutting import cut_documents
from munjang.index.documents import Metadata, documents_of, new_fields, sections_by_id
from munjang.index.encoders import Encoders
from munjang.stores.base import Rows, Store
from munjang.stores.checks import check_fields, check_rows
from munjang.text.passages import PassageCutter

BATCH_DOCUMENTS = 2048  # cut, encoded and stored together: what a killed run may have to do again


def write_documents(
    store: Store,
    encoders: Encoders,
    cutter: PassageCutter | None,
    texts: Any,
    ids: Sequence[str] | None,
    metadata: Sequence[Metadata] | None,
    vectors: Any,
    progress: bool | None,
    is_new: bool,
    sections: Sequence[Sequence[Section]] | None = None,
) -> list[str]:
    """Cut, encode and store documents, and return their ids; `is_new`: an id that exists is an error."""
    documents, vectors_ND = documents_of(texts, ids, metadata, vectors)
    sections_of = sections_by_id(ids, sections)
    own = [section.metadata for each in sections_of.values() for section in each]
    context: list[Metadata] = [{FIELD: ""}] if "context" in store.schema.facts else []
    fields = new_fields([values for _, _, values in documents] + own + context, store.schema.fields)
    source = iter(documents)
    start = 0
    while batch := list(islice(source, BATCH_DOCUMENTS)):
        batch_ids = [id for id, _, _ in batch]
        batch_ND = None if vectors_ND is None else vectors_ND[start : start + len(batch)]
        cut = cut_documents(batch, cutter if batch_ND is None else None, store, sections_of)
        rows = cut.encoded(encoders, store.schema, batch_ND, progress)
        if is_new:
            present = [id for id, passages in store.passages(batch_ids).items() if passages]
            if present:
                raise InputError(f"{present[0]!r} is in the index already; upsert replaces it.")
        rows = make_room(store, rows, fields)
        put_rows(store, rows, batch_ids, is_new)
        start += len(batch)
    return [id for id, _, _ in documents]


def put_rows(store: Store, rows: Rows, document_ids: Sequence[str], is_new: bool) -> None:
    """Store rows. A document that got shorter leaves no passages behind, and is never gone in between."""
    if is_new:
        store.add(rows)
        return
    before = {id for passages in store.passages(document_ids).values() for id in passages}
    store.upsert(rows)
    gone = before - set(rows.ids)
    if gone:
        store.remove(sorted(gone))


def make_room(store: Store, rows: Rows, fields: Mapping[str, str]) -> Rows:
    """Add fields that no row had before, once it is clear that the rows can be stored: refused ones leave no field
    behind, whose type a value that is not there would have fixed. Return rows without fields that are null in all."""
    used = {name for values in rows.metadata for name in values}
    new = check_fields({name: kind for name, kind in fields.items() if name in used}, store.schema.fields)
    known = {**store.schema.fields, **new}
    if empty := used - set(known):
        kept = [{name: value for name, value in values.items() if name not in empty} for values in rows.metadata]
        rows = replace(rows, metadata=kept)
    if new:
        check_rows(rows, replace(store.schema, fields=known), store.abilities)
        store.extend(new)
    return rows
