"""The record that an index keeps of its models, of how it cuts documents and how its store keeps vectors."""

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError, unknown
from munjang.index.context import CONTEXTS, check_late_chunking
from munjang.index.encoders import Encoders, name_of
from munjang.stores.base import Schema
from munjang.text.passages import PassageCutter
from munjang.text.terms import method
from munjang.types import Array, Floats
from munjang.vectors.precision import quantize

FORMAT = 2  # of what an index writes down beside its rows
FIRST_FORMAT = 1  # without models or passages that it does not know
MAX_PASSAGE_TOKENS = 256
OVERLAP_TOKENS = 32


class OpenOptions(TypedDict, total=False):
    """Options of a new index, which it records; those of an existing one can't change."""

    sparse: Any  # a SparseEncoder, its folder or Hub name
    late: Any  # a MultiVectorEncoder, its folder or Hub name
    tokens: Literal["int8", "float16", "float32"] | str | None
    pool_factor: float | None
    overlap: int | None
    context: Literal["none", "title", "headings"] | str | None
    late_chunking: bool | None


PASSAGE_DEFAULTS: dict[str, Any] = {"overlap": None, "context": "none", "late_chunking": False}


def schema_of(encoders: Encoders, vectors: str, chunk: int | None, name: Any, options: Mapping[str, Any]) -> Schema:
    """Return the schema of a new index; `name`: how the model was named, None: by its folder."""
    model = encoders.dense
    facts: dict[str, Any] = {
        "format": FIRST_FORMAT,
        "model": name_of(model, name),
        "fingerprint": model.fingerprint,
        "chunk": _max_passage_tokens(model, chunk),
        "terms": method(),
    }
    newer = _passages(options, facts["chunk"], model)
    if beside := encoders.facts(options):
        newer["beside"] = beside
    if newer:
        facts |= {**newer, "format": FORMAT}
    if vectors == "int8":
        if model.ranges is None:
            raise InputError("int8 vectors need the model's ranges; call model.calibrate(texts) and save it first.")
        facts["ranges"] = np.asarray(model.ranges).tolist()
    return Schema(
        model.dimension,
        model.similarity_name,
        vectors,
        {},
        facts,
        0 if encoders.sparse is None else encoders.sparse.dimension,
        0 if encoders.late is None else encoders.late.dimension,
        encoders.tokens,
    )


def _passages(options: Mapping[str, Any], chunk: int, model: BiEncoder) -> dict[str, Any]:
    """Return the facts of passages that are not the default."""
    stated = {name: options.get(name) for name in PASSAGE_DEFAULTS}
    facts = {name: value for name, value in stated.items() if value not in (None, PASSAGE_DEFAULTS[name])}
    if facts.get("context", "none") not in CONTEXTS:
        raise unknown("context", str(facts["context"]), CONTEXTS)
    overlap = facts.get("overlap", 0)
    if isinstance(overlap, bool) or not isinstance(overlap, int) or not 0 <= overlap <= chunk // 2:
        raise InputError(f"overlap is {overlap!r}; with passages of {chunk} tokens, 0 to {chunk // 2}.")
    if facts.get("late_chunking"):
        check_late_chunking(model)
        if "context" in facts:
            raise InputError("late_chunking reads a passage within its document; leave out context=.")
    return facts


def check_unchanged(facts: Mapping[str, Any], options: Mapping[str, Any], location: str) -> None:
    """Refuse options of passages other than those that an existing index was made with."""
    for name, default in PASSAGE_DEFAULTS.items():
        own = facts.get(name, default)
        if options.get(name) not in (None, own):
            raise InputError(
                f"{location} was made with {name}={own!r}, not {options[name]!r}; create another index for that."
            )


def stored_vectors(full: Floats, schema: Schema) -> tuple[Array, Floats | None]:
    """Convert vectors to what the store keeps; the full ones come second where those have fewer bits."""
    if schema.vectors in ("float32", "float16"):
        return full.astype(schema.vectors), None
    if schema.vectors == "binary":
        return quantize(full, "ubinary", None), full
    return quantize(full, "int8", np.array(schema.facts["ranges"], np.float32)), full


def cutter_of(model: BiEncoder, facts: Mapping[str, Any]) -> PassageCutter | None:
    """Return what cuts documents into passages as an index recorded it; None where nothing is cut."""
    max_tokens = facts["chunk"]
    if not max_tokens:
        return None
    overlap = facts.get("overlap", min(OVERLAP_TOKENS, max_tokens // 4))
    return PassageCutter(max_tokens, overlap, lambda texts: model.tokenizer.bodies(list(texts))[1])


def _max_passage_tokens(model: BiEncoder, chunk: int | None) -> int:
    limit = model.max_length
    if chunk is None:
        room = MAX_PASSAGE_TOKENS if limit is None else limit - model.tokenizer.single.num_special
        return min(MAX_PASSAGE_TOKENS, room)
    if chunk < 0:
        raise InputError(f"chunk is the longest passage in tokens, or 0 to cut nothing, not {chunk}.")
    return chunk
