"""The record that an index keeps of its model, of how it cuts documents and how its store keeps vectors."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from munjang import checkpoint
from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.stores.base import Schema
from munjang.text.passages import PassageCutter
from munjang.text.terms import method
from munjang.types import Array, Floats
from munjang.vectors.precision import quantize

FORMAT = 1  # of what an index writes down beside its rows
MAX_PASSAGE_TOKENS = 256
OVERLAP_TOKENS = 32


def schema_of(model: BiEncoder, vectors: str, chunk: int | None, name: Any) -> Schema:
    """Return the schema of a new index; `name`: how the model was named, None: by its folder."""
    where = model.model.folder if name is None or isinstance(name, BiEncoder) else name
    is_folder = Path(where).is_dir()
    facts: dict[str, Any] = {
        "format": FORMAT,
        "model": (checkpoint.name_of(Path(where)) or os.path.abspath(where)) if is_folder else where,
        "fingerprint": model.fingerprint,
        "chunk": _max_passage_tokens(model, chunk),
        "terms": method(),
    }
    if vectors == "int8":
        if model.ranges is None:
            raise InputError("int8 vectors need the model's ranges; call model.calibrate(texts) and save it first.")
        facts["ranges"] = np.asarray(model.ranges).tolist()
    return Schema(model.dimension, model.similarity_name, vectors, {}, facts)


def stored_vectors(full: Floats, schema: Schema) -> tuple[Array, Floats | None]:
    """Convert vectors to what the store keeps; the full ones come second where those have fewer bits."""
    if schema.vectors in ("float32", "float16"):
        return full.astype(schema.vectors), None
    if schema.vectors == "binary":
        return quantize(full, "ubinary", None), full
    return quantize(full, "int8", np.array(schema.facts["ranges"], np.float32)), full


def cutter_of(model: BiEncoder, max_tokens: int) -> PassageCutter | None:
    """Return what cuts documents into passages of so many tokens; None for 0: nothing is cut."""
    if not max_tokens:
        return None
    overlap = min(OVERLAP_TOKENS, max_tokens // 4)
    return PassageCutter(max_tokens, overlap, lambda texts: model.tokenizer.bodies(list(texts))[1])


def _max_passage_tokens(model: BiEncoder, chunk: int | None) -> int:
    limit = model.max_length
    if chunk is None:
        room = MAX_PASSAGE_TOKENS if limit is None else limit - model.tokenizer.single.num_special
        return min(MAX_PASSAGE_TOKENS, room)
    if chunk < 0:
        raise InputError(f"chunk is the longest passage in tokens, or 0 to cut nothing, not {chunk}.")
    return chunk
