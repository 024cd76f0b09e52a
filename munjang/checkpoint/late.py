"""Read and write late-interaction folders: sentence-transformers 6, PyLate, Stanford's ColBERT, and BGE-M3's head."""

import string
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken
from torch import nn

from munjang.checkpoint import layouts, m3
from munjang.checkpoint.encoders import load_encoder
from munjang.checkpoint.files import Json, Weights, read_json, read_json_if, whole
from munjang.checkpoint.model import Expansion, LateSettings, Model, TokenPooling
from munjang.checkpoint.modules import MODULES, read_dense, read_normalize
from munjang.checkpoint.settings import LATE_KINDS, encoder_settings, model_settings
from munjang.errors import CheckpointError, UnsupportedModel
from munjang.nn.heads import Dense, Normalize
from munjang.nn.late import TokenNetwork
from munjang.text.tokenizer import Tokenizer
from munjang.types import Floats

TOKENS = "token_embeddings"
DEFAULT_QUERY_LENGTH = 32  # of ColBERT
METADATA_FILE = "artifact.metadata"  # of Stanford's ColBERT
PUNCTUATION = tuple(string.punctuation)
MEASURES = ("maxsim", "meanmaxsim")


def read_mask(folder: Path) -> LateSettings:
    """Read MultiVectorMask: which tokens get no vector."""
    path = folder / "config.json"
    config = read_json(path)
    roles, ids = config.get("skiplist_tasks") or ["document"], config.get("keep_only_token_ids")
    return LateSettings(
        skipped_words=_words(config.get("skiplist_words") or [], path),
        skipping_roles=_words([roles] if isinstance(roles, str) else roles, path),
        kept_ids=None if not ids else tuple(whole(number, f"{path}: keep_only_token_ids", 0) for number in ids),
    )


def read_pooling(folder: Path) -> TokenPooling:
    """Read HierarchicalTokenPooling; folders without `normalize_embeddings` were written before it was the default."""
    path = folder / "config.json"
    config = read_json(path)
    factor, roles = config.get("pool_factor", 1.0), config.get("tasks") or ["document"]
    if not isinstance(factor, int | float) or not 1 <= factor < float("inf"):
        raise CheckpointError(f"{path}: pool_factor should be a number of at least 1, not {factor!r:.60}.")
    protected = whole(config.get("num_protected_tokens", 1), f"{path}: num_protected_tokens", 0)
    is_normalized = bool(config.get("normalize_embeddings", False))
    return TokenPooling(float(factor), protected, is_normalized, _words(roles, path))


def _words(value: object, path: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise CheckpointError(f"{path} should list words, not {value!r:.60}.")
    return tuple(value)


READERS: dict[str, Callable[[Path], Any]] = {
    "Dense": partial(read_dense, over=TOKENS),
    "Normalize": partial(read_normalize, over=TOKENS),
    "LayerNorm": MODULES["LayerNorm"],
    "Dropout": MODULES["Dropout"],
    "MultiVectorMask": read_mask,
    "HierarchicalTokenPooling": read_pooling,
}


def read_late_modules(folder: Path) -> Model:
    """Read a MultiVectorEncoder of sentence-transformers 6, or a folder of PyLate."""
    settings = model_settings(folder)
    is_pylate = settings.kind == "ColBERT" or "query_prefix" in settings.stated
    if not is_pylate and settings.kind not in LATE_KINDS:
        raise UnsupportedModel(
            f"{folder} is no late-interaction model: it is a {settings.kind or 'SentenceTransformer'}. "
            "MultiVectorEncoder.create starts one on its encoder."
        )
    _, first, parts = layouts.read_parts(folder, READERS, ("Transformer",))
    tail = [part for part in parts if isinstance(part, nn.Module)]
    if is_pylate and not (tail and isinstance(tail[-1], Normalize)):
        tail.append(Normalize())
    layout = "pylate" if is_pylate else "sentence-transformers late interaction"
    model = _read(first, layout, tail)
    masks = [part for part in parts if isinstance(part, LateSettings)]
    pooling = [part for part in parts if isinstance(part, TokenPooling)]
    late = replace(masks[-1] if masks else LateSettings(), pooling=pooling[-1] if pooling else None)
    stated = {**_pylate_lengths(settings.stated), **encoder_settings(first).late}
    prompts = dict(settings.prompts)
    if is_pylate:
        words = settings.stated.get("skiplist_words")
        late = late if masks else replace(late, skipped_words=PUNCTUATION if words is None else _words(words, folder))
        for role in ("query", "document"):
            marker = settings.stated.get(f"{role}_prefix") or ""
            prompts[role] = marker + prompts.get(role, "").removeprefix(marker)
        model.tokenizer = with_markers(model.tokenizer, list(prompts.values()))
    model.late = _with_lengths(late, stated, model, folder)
    model.prompts, model.default_prompt_name = prompts, settings.default_prompt_name
    model.similarity = settings.similarity if settings.similarity in MEASURES else "maxsim"
    return model


def _pylate_lengths(stated: Json) -> Json:
    """Return PyLate's own keys in the words of sentence-transformers: expansion is on unless switched off."""
    keys = ("query_length", "document_length", "query_prefix", "document_prefix", "do_query_expansion")
    if not any(key in stated for key in (*keys, "skiplist_words", "attend_to_expansion_tokens")):
        return {}
    lengths = {key: stated[key] for key in keys[:2] if stated.get(key) is not None}
    if stated.get("do_query_expansion") is False:
        return lengths
    length = lengths.pop("query_length", None) or DEFAULT_QUERY_LENGTH
    is_seen = bool(stated.get("attend_to_expansion_tokens", stated.get("attend_to_mask_tokens")))
    return {**lengths, "query_expansion": {"strategy": "fixed", "attend": is_seen, "length": length}}


def read_colbert(folder: Path) -> Model:
    """Read Stanford's ColBERT: encoder and projection in one file, the rest in artifact.metadata."""
    weights = Weights(folder)
    if "linear.weight" not in weights:
        raise CheckpointError(f"{folder} lacks the tensor linear.weight, ColBERT's projection.")
    matrix = weights["linear.weight"].float()
    dense = Dense(matrix.shape[1], matrix.shape[0], has_bias=False, activation=nn.Identity())
    dense.linear.weight = nn.Parameter(matrix)
    model = _read(folder, "colbert", [dense, Normalize()], is_plain=True)
    stated = read_json_if(folder / METADATA_FILE)
    markers = {
        "query": (stated.get("query_token_id") or "[unused0]") + " ",
        "document": (stated.get("doc_token_id") or "[unused1]") + " ",
    }
    model.tokenizer = with_markers(model.tokenizer, list(markers.values()))
    model.prompts, model.similarity = markers, "maxsim"
    expansion = {
        "strategy": "fixed",
        "attend": bool(stated.get("attend_to_mask_tokens")),
        "length": stated.get("query_maxlen") or DEFAULT_QUERY_LENGTH,
    }
    lengths = {"document_length": stated.get("doc_maxlen"), "query_expansion": expansion}
    late = LateSettings(skipped_words=PUNCTUATION if stated.get("mask_punctuation", True) else ())
    model.late = _with_lengths(late, lengths, model, folder)
    return model


def read_m3(folder: Path) -> Model:
    """Read the token vectors of BGE-M3: every token but the first, projected."""
    first = layouts.read_modules(folder)[0][1]
    linear = m3.read_linear(folder / m3.TOKENS_FILE)
    dense = Dense(linear.in_features, linear.out_features, linear.bias is not None, nn.Identity())
    dense.linear = linear
    model = _read(first, "bge-m3", [dense, Normalize()])
    first_ids = model.tokenizer.single.parts[0][0].tolist()
    words = tuple(filter(None, (model.tokenizer.rust.id_to_token(number) for number in first_ids)))
    model.late = LateSettings(skipped_words=words, skipping_roles=("query", "document"))
    model.similarity = "meanmaxsim"
    return model


def _read(folder: Path, layout: str, tail: list[nn.Module], is_plain: bool = False) -> Model:
    model = layouts.read_transformer(
        folder, layout, lambda config: TokenNetwork(load_encoder(folder, config), tail), is_plain, is_late=True
    )
    layouts.check_widths(folder, model.network.encoder.width, tail)
    return model


def with_markers(tokenizer: Tokenizer, prompts: list[str]) -> Tokenizer:
    """Make the marker that a prompt begins with one token, if the vocabulary has it: `[unused0]`, or `[Q] `."""
    rust, found = tokenizer.rust, []
    vocab = rust.get_vocab(with_added_tokens=True)
    for prompt in prompts:
        for marker in (prompt, *prompt.split(None, 1)[:1]):
            if marker in vocab:
                if rust.encode(marker, add_special_tokens=False).tokens != [marker]:
                    found.append(AddedToken(marker, normalized=False, special=True))
                break
    if not found:
        return tokenizer
    rust.add_special_tokens(found)
    marked = Tokenizer(rust, tokenizer.max_length, tokenizer.has_special)
    marked.dropped, marked.has_types = tokenizer.dropped, tokenizer.has_types
    return marked


def _with_lengths(late: LateSettings, stated: Json, model: Model, folder: Path) -> LateSettings:
    """Add lengths and expansion; the expansion's token is the mask where none is named."""
    lengths = (
        None if stated.get(key) is None else whole(stated[key], f"{folder}: {key}")
        for key in ("query_length", "document_length")
    )
    given, expansion = stated.get("query_expansion"), None
    if given is not None:
        if not isinstance(given, dict) or given.get("strategy") not in ("fixed", "min"):
            raise CheckpointError(
                f"{folder}: query_expansion should have the strategy fixed or min, not {given!r:.90}."
            )
        length = whole(given.get("length"), f"{folder}: the length of query_expansion")
        token = _expansion_token(given.get("token"), model, folder)
        is_seen = bool(given.get("attend", False))
        expansion = Expansion(token, length, given["strategy"] == "fixed", is_seen)
    query_length, document_length = lengths
    return replace(late, query_length=query_length, document_length=document_length, expansion=expansion)


def _expansion_token(given: object, model: Model, folder: Path) -> int:
    stated = model.tokenizer_config
    for name in [stated.get("mask_token"), "[MASK]", "<mask>", stated.get("eos_token")] if given is None else [given]:
        word = name.get("content") if isinstance(name, dict) else name
        if isinstance(word, str) and (number := model.tokenizer.rust.token_to_id(word)) is not None:
            return number
    raise CheckpointError(f"{folder}: queries are expanded with {given or 'the mask'!r}, which the tokenizer lacks.")


def is_colbert(folder: Path) -> bool:
    """Recognize Stanford's ColBERT by its class."""
    names = read_json_if(folder / "config.json").get("architectures")
    return isinstance(names, list) and "HF_ColBERT" in names


LATE_LAYOUTS: list[tuple[str, Callable[[Path], bool], Callable[[Path], Model]]] = [
    ("bge-m3", m3.has_tokens, read_m3),
    ("sentence-transformers", lambda folder: (folder / "modules.json").is_file(), read_late_modules),
    ("colbert", is_colbert, read_colbert),
]


def load_late(folder: Path) -> Model:
    """Read a late-interaction model from a folder of any known layout."""
    for _, fits, read in LATE_LAYOUTS:
        if fits(folder):
            return read(folder)
    raise CheckpointError(
        f"{folder} is not a late-interaction model: it is neither of sentence-transformers, PyLate nor ColBERT. "
        "MultiVectorEncoder.create starts one on an encoder."
    )


def new_late(folder: Path, dimension: int, states_ND: Floats | None = None) -> Model:
    """Start a late-interaction model on the encoder of any folder.

    Its projection is to the principal directions of token states, without any to random ones.
    """
    encoder, model = layouts.new_encoder(folder)
    dense = Dense(encoder.width, dimension, has_bias=False, activation=nn.Identity())
    nn.init.normal_(dense.linear.weight, std=encoder.width**-0.5)
    if states_ND is not None:
        _, directions_DD = np.linalg.eigh(states_ND.T @ states_ND)
        number = min(dimension, encoder.width)
        dense.linear.weight.data[:number] = torch.from_numpy(directions_DD[:, -number:].T.copy())
    model.network = TokenNetwork(encoder, [dense, Normalize()])
    model.late, model.similarity, model.layout = LateSettings(), "maxsim", "new late interaction"
    return model
