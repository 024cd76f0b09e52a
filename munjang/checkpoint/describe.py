"""Describe a loaded model: `info`, its fingerprint, the limits that its network sets."""

import hashlib

from munjang.checkpoint.compact import FORMAT
from munjang.checkpoint.model import Model
from munjang.errors import CheckpointError, InputError

RERANK_WEIGHT = "munjang_rerank_weight"  # key of a cross-encoder's config.json


def check_length(model: Model, tokens: int | None, num_special: int) -> None:
    """Refuse a limit that leaves no room for text, or that the positions do not reach."""
    most = model.network.encoder.max_tokens
    if isinstance(tokens, bool) or not isinstance(tokens, int | None):
        raise InputError(f"max_length should be a whole number or None, not {tokens!r}.")
    if tokens is not None and tokens <= num_special:
        raise InputError(f"max_length must leave room for text beside {num_special} special tokens, not {tokens}.")
    if most is not None and (tokens is None or tokens > most):
        raise InputError(f"max_length can be at most {most}, which is how many positions the model has, not {tokens}.")


def describe(model: Model) -> dict[str, object]:
    """Return what bi- and cross-encoders have in common, for `info`."""
    encoder = model.network.encoder
    return {
        "folder": str(model.folder),
        "layout": model.layout,
        "format": "onnx" if encoder.is_exported else FORMAT if model.is_compact else "float",
        "architecture": model.config.get("model_type", "static"),
        "engine": encoder.engine,
        "parameters": model.network.num_parameters,
        "vocabulary": encoder.vocab_size,
        "tokenizer": model.tokenizer.path,
        **encoder.facts(),
    }


def fingerprint(model: Model) -> str:
    """Hash everything that decides the results: weights, modules and tokenizer."""
    digest = hashlib.blake2b(model.network.digest().encode(), digest_size=16)
    tokenizer = model.tokenizer
    digest.update(repr((tokenizer.max_length, tokenizer.dropped, tokenizer.has_types)).encode())
    digest.update(model.tokenizer.rust.to_str().encode())
    return digest.hexdigest()


def stated_weight(model: Model) -> float:
    """Return a cross-encoder's weight beside the retrieval's score, as config.json states it; 1 where it does not."""
    stated = model.config.get(RERANK_WEIGHT, 1.0)
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not 0 <= stated <= 1:
        where = model.folder / "config.json"
        raise CheckpointError(f"{where}: {RERANK_WEIGHT} should be a number from 0 to 1, not {stated!r:.60}.")
    return float(stated)
