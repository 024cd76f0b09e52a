"""What callers give to an index, checked: texts, ids, metadata, vectors."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from munjang.errors import InputError
from munjang.stores.base import Value
from munjang.text.inputs import as_texts
from munjang.types import Floats
from munjang.vectors.similarity import check_vectors

Metadata: TypeAlias = Mapping[str, Value]


def documents_of(
    texts: Any, ids: Sequence[str] | None, metadata: Sequence[Metadata] | None, vectors: Any
) -> tuple[list[tuple[str, str, Metadata]], Floats | None]:
    """Id, text and metadata of every document, and their vectors if they were given; equal ones are one."""
    known = None if vectors is None else check_vectors(vectors, "vectors")
    if texts is None and known is None:
        raise InputError("Give texts, or vectors with ids.")
    given = [""] * len(known) if texts is None and known is not None else as_texts(_listed(texts))
    values = [{}] * len(given) if metadata is None else list(metadata)
    names = [document_id(text, each) for text, each in zip(given, values, strict=False)] if ids is None else list(ids)
    sizes = {"texts": len(given), "ids": len(names), "metadata": len(values)}
    if known is not None:
        sizes["vectors"] = len(known)
    if len(set(sizes.values())) != 1:
        raise InputError(f"One of each for every document; there are {sizes}.")
    if ids is None:  # equal documents are one
        unique = dict(zip(names, range(len(names)), strict=True))
        keep = sorted(unique.values())
        names, given, values = ([column[at] for at in keep] for column in (names, given, values))  # type: ignore[assignment]
        known = None if known is None else known[keep]
    elif len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"The id {twice!r} is given twice.")
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(f"An id is a text that is not empty, not {name!r:.40}.")
    return list(zip(names, given, values, strict=True)), known


def _listed(texts: Any) -> Any:
    return [texts] if isinstance(texts, str) else texts


def document_id(text: str, metadata: Metadata) -> str:
    """The id of a document that has none: a hash of its text and metadata."""
    content = json.dumps([text, dict(sorted(metadata.items()))], ensure_ascii=True)
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def kind_of(name: str, value: Value) -> str:
    """What is stored for a value: bool, int, float or text."""
    if not isinstance(name, str) or not name:
        raise InputError(f"The name of a metadata field is a text that is not empty, not {name!r:.40}.")
    for kind, python in (("bool", bool), ("int", int), ("float", float), ("text", str)):
        if isinstance(value, python):
            return kind
    raise InputError(f"The metadata {name!r} is {type(value).__name__}; text, numbers, true and false can be stored.")
