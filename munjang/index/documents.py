"""Documents that callers give to an index, checked: texts, ids, metadata, vectors."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from munjang.data.documents import Section
from munjang.errors import InputError
from munjang.stores.checks import check_keys
from munjang.text.inputs import as_texts
from munjang.text.passages import Passage
from munjang.types import Floats, Value
from munjang.vectors.similarity import check_vectors

Metadata: TypeAlias = Mapping[str, Value]


def documents_of(
    texts: Any, ids: Sequence[str] | None, metadata: Sequence[Metadata] | None, vectors: Any
) -> tuple[list[tuple[str, str, Metadata]], Floats | None]:
    """Return (id, text, metadata) of every document, and their vectors if given; without ids, equal ones are one."""
    vectors_ND = None if vectors is None else check_vectors(vectors, "vectors")
    if texts is None and vectors_ND is None:
        raise InputError("Give texts, or vectors with ids.")
    if texts is None and vectors_ND is not None:
        bodies = [""] * len(vectors_ND)
    else:
        bodies = as_texts([texts] if isinstance(texts, str) else texts)
    fields: list[Metadata] = [{}] * len(bodies) if metadata is None else list(metadata)
    for number, values in enumerate(fields):
        if not isinstance(values, Mapping):
            raise InputError(f"Metadata is a dict of names and values, not {type(values).__name__} ({values!r:.40}).")
        check_keys(values, f"document {number}")  # before anything is computed
    names = [document_id(*pair) for pair in zip(bodies, fields, strict=False)] if ids is None else list(ids)
    sizes = {"texts": len(bodies), "ids": len(names), "metadata": len(fields)}
    if vectors_ND is not None:
        sizes["vectors"] = len(vectors_ND)
    if len(set(sizes.values())) != 1:
        raise InputError(f"Give one of each for every document; there are {sizes}.")
    documents = list(zip(names, bodies, fields, strict=True))
    if ids is None:
        keep = sorted({name: row for row, name in enumerate(names)}.values())
        documents = [documents[row] for row in keep]
        vectors_ND = None if vectors_ND is None else vectors_ND[keep]
    elif len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"The id {twice!r} is given twice.")
    for name, _, _ in documents:
        if not isinstance(name, str) or not name:
            raise InputError(f"An id must be a non-empty string, not {name!r:.40}.")
    return documents, vectors_ND


def sections_by_id(
    ids: Sequence[str] | None, sections: Sequence[Sequence[Section]] | None
) -> dict[str, Sequence[Section]]:
    """Return the sections of each document that has some."""
    if sections is None:
        return {}
    if ids is None or len(ids) != len(sections):
        raise InputError("Give sections for every document, together with ids.")
    return {id: own for id, own in zip(ids, sections, strict=True) if own}


def section_metadata(sections: Sequence[Section], passage: Passage) -> Metadata:
    """Return the metadata of the section that most of a passage lies in; of two equal ones, the first.

    >>> sections = [Section(0, {"page": 1}), Section(100, {"page": 2})]
    >>> section_metadata(sections, Passage("", 90, 130))
    {'page': 2}
    """
    if not sections:
        return {}
    starts = [section.start for section in sections]
    first = max(0, bisect_right(starts, passage.start) - 1)
    last = max(first, bisect_left(starts, passage.end) - 1)
    ends = [*starts[1:], passage.end]

    def length(at: int) -> int:
        return min(ends[at], passage.end) - max(starts[at], passage.start)

    return sections[max(range(first, last + 1), key=length)].metadata


def document_id(text: str, metadata: Metadata) -> str:
    """Return the id of a document that was given none: a hash of its text and metadata."""
    content = json.dumps([text, dict(sorted(metadata.items()))], ensure_ascii=True)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def new_fields(metadata: Sequence[Metadata], known: Mapping[str, str]) -> dict[str, str]:
    """Return name and kind of the fields that are not known yet; refuse values of another kind than their field's."""
    new: dict[str, str] = {}
    for values in metadata:
        for name, value in values.items():
            if value is None:
                continue
            kind, before = kind_of(name, value), known.get(name) or new.get(name)
            if before is None or (before == "int" and kind == "float" and name in new):
                new[name] = kind
            elif kind != before and not (before == "float" and kind == "int"):
                raise InputError(f"The field {name!r} is {before} in this index, not {kind} ({value!r:.40}).")
    return new


def kind_of(name: str, value: Value) -> str:
    """Return how a value is stored: bool, int, float or text."""
    if not isinstance(name, str) or not name:
        raise InputError(f"The name of a metadata field must be a non-empty string, not {name!r:.40}.")
    for kind, python_type in (("bool", bool), ("int", int), ("float", float), ("text", str)):
        if isinstance(value, python_type):
            return kind
    raise InputError(
        f"The metadata {name!r} is of type {type(value).__name__}; only text, numbers, true and false can be stored."
    )
