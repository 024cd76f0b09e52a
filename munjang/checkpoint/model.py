"""A model read from a folder: its network and tokenizer, its description for `info`, and its limits."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from munjang.checkpoint.compact import FORMAT
from munjang.checkpoint.files import Json
from munjang.errors import CheckpointError, InputError
from munjang.nn.base import Network
from munjang.text.tokenizer import Tokenizer
from munjang.types import Floats

RERANK_WEIGHT = "munjang_rerank_weight"  # key of a cross-encoder's config.json


@dataclass(frozen=True)
class Expansion:
    """Query expansion: a query is filled up with a token of its own, as ColBERT does."""

    token: int
    length: int  # tokens of a query afterwards, special ones included
    is_fixed: bool = True  # longer queries are cut to it; False: they stay as they are
    is_seen: bool = False  # whether the other tokens attend to those added


@dataclass(frozen=True)
class TokenPooling:
    """Pooling of tokens: those of a text are merged to fewer (Ward's clusters, each as its mean)."""

    factor: float
    num_protected: int = 1
    is_normalized: bool = True
    roles: tuple[str, ...] = ("document",)


@dataclass(frozen=True)
class LateSettings:
    """The settings of a late-interaction folder."""

    query_length: int | None = None
    document_length: int | None = None
    expansion: Expansion | None = None
    skipped_words: tuple[str, ...] = ()  # they get no vector: punctuation
    skipping_roles: tuple[str, ...] = ("document",)
    kept_ids: tuple[int, ...] | None = None  # the only tokens of a document that get a vector
    pooling: TokenPooling | None = None


@dataclass
class Model:
    """A network and its tokenizer, with all that is needed to write them again."""

    network: Network
    tokenizer: Tokenizer
    layout: str
    folder: Path  # where config.json and the tokenizer are
    config: Json = field(default_factory=dict)  # config.json of the encoder
    tokenizer_config: Json = field(default_factory=dict)
    is_lowered: bool = False  # do_lower_case of sentence_bert_config.json
    is_compact: bool = False  # in 8 bits on disk
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity: str | None = None
    truncate_dim: int | None = None
    activation: nn.Module | None = None
    ranges: Floats | None = None  # of each component, for int8 vectors
    late: LateSettings | None = None  # of late interaction
    query: "Model | None" = None  # what reads queries, where it is not what reads documents
    max_active_dims: int | None = None  # of sparse vectors

    def __post_init__(self) -> None:
        if (encoder := self.network.encoder.own) is not None:
            (before, _), (behind, _) = self.tokenizer.single.parts
            encoder.ends = before.tolist(), behind.tolist()


def check_length(model: Model, max_length: int | None, num_special: int) -> None:
    """Refuse a limit that leaves no room for text, or that the positions do not reach."""
    max_tokens = model.network.encoder.max_tokens
    if isinstance(max_length, bool) or not isinstance(max_length, int | None):
        raise InputError(f"max_length should be a whole number or None, not {max_length!r}.")
    if max_length is not None and max_length <= num_special:
        raise InputError(f"max_length must leave room for text beside {num_special} special tokens, not {max_length}.")
    if max_tokens is not None and (max_length is None or max_length > max_tokens):
        raise InputError(f"max_length can be at most {max_tokens}, the model's number of positions, not {max_length}.")


def describe(model: Model) -> dict[str, object]:
    """Return the facts that `info` shows of bi- and cross-encoders alike."""
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
