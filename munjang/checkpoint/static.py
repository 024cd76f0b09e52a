"""Read static token embeddings: StaticEmbedding of sentence-transformers, and model2vec's own folders."""

import json
from pathlib import Path

import torch
from torch import Tensor

from munjang.checkpoint.files import Json, Weights, has_weights, read_json_if
from munjang.checkpoint.model import Model
from munjang.checkpoint.settings import EncoderSettings, read_limit
from munjang.checkpoint.tokenizer import check_vocabulary, load_tokenizer
from munjang.errors import CheckpointError
from munjang.nn.heads import Normalize, check_weight
from munjang.nn.network import SentenceNetwork, StaticEncoder
from munjang.text.build import build
from munjang.text.tokenizer import Tokenizer

DEFAULT_MAX_TOKENS = 512  # of model2vec


def load_static(folder: Path) -> tuple[StaticEncoder, Tokenizer]:
    """Read the embedding table and tokenizer of a folder; texts are cut where tokenizer.json itself says so."""
    weight, tokenizer = static_weight(Weights(folder)), load_static_tokenizer(folder)
    check_vocabulary(folder, tokenizer, len(weight))
    return StaticEncoder(weight), tokenizer


def load_static_tokenizer(folder: Path) -> Tokenizer:
    """Read a tokenizer without special tokens."""
    truncation = build(folder, {}).truncation
    tokenizer, _ = load_tokenizer(folder, {}, EncoderSettings(), has_special=False)
    tokenizer.max_length = None if truncation is None else truncation["max_length"]
    ours = read_json_if(folder / "config.json").get("munjang")
    if isinstance(ours, dict) and ours.get("leaves_out_unknown"):  # a model2vec model that we saved
        tokenizer.dropped = unknown_id(tokenizer)
    return tokenizer


def static_weight(weights: Weights) -> Tensor:
    """Return one row per token id, from StaticEmbedding's or model2vec's names (its weights and mapping folded in)."""
    name = next((name for name in ("embedding.weight", "embeddings") if name in weights), None)
    if name is None:
        raise CheckpointError(f"{weights.folder} holds {', '.join(list(weights)[:5])}, not static embeddings.")
    stored = weights[name]
    # model2vec also stores int8, which its own vectors take as they are
    check_weight(f"{weights.folder}: the tensor {name}", stored, is_float=stored.dtype is not torch.int8)
    weight = stored.float()
    if weight.ndim != 2 or not weight.shape[1]:
        raise CheckpointError(f"{weights.folder}: the tensor {name} should have two dimensions, not {weight.shape}.")
    if name == "embeddings" and "mapping" in weights:
        mapping = weights["mapping"].long()
        if mapping.ndim != 1 or not len(mapping) or not 0 <= int(mapping.min()) <= int(mapping.max()) < len(weight):
            raise CheckpointError(f"{weights.folder}: the tensor mapping names rows outside of 0 to {len(weight) - 1}.")
        weight = weight[mapping]
    if name == "embeddings" and "weights" in weights:
        scale = weights["weights"]
        check_weight(f"{weights.folder}: the tensor weights", scale)
        if scale.shape != weight.shape[:1]:
            raise CheckpointError(f"{weights.folder}: the tensor weights has {len(scale)} values, not {len(weight)}.")
        weight = weight * scale.float()[:, None]
    return weight


def is_model2vec(folder: Path) -> bool:
    """Recognize a folder of model2vec: it says so, or names no architecture and holds nothing but embeddings."""
    config = read_json_if(folder / "config.json")
    if config.get("model_type") is not None or config.get("architectures"):
        return bool(config.get("model_type") == "model2vec")
    return (folder / "tokenizer.json").is_file() and has_weights(folder) and "embeddings" in Weights(folder)


def read_model2vec(folder: Path, pooling: tuple[str, ...] | None) -> Model:
    """Read model2vec's own folder: unknown tokens are left out of the mean, and texts are cut by tokens."""
    config = read_json_if(folder / "config.json")
    encoder, tokenizer = load_static(folder)
    tokenizer.max_length = read_limit(config.get("max_length", DEFAULT_MAX_TOKENS), folder / "config.json")
    tokenizer.dropped = unknown_id(tokenizer)
    network = SentenceNetwork(encoder, pooling or ("mean",), [Normalize()] if config.get("normalize") else [])
    return Model(network, tokenizer, "model2vec", folder)


def unknown_id(tokenizer: Tokenizer) -> int | None:
    """Return the id that a tokenizer gives to unknown text, or None."""
    model: Json = json.loads(tokenizer.rust.to_str())["model"]
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    token = model.get("unk_token")
    return None if token is None else tokenizer.rust.token_to_id(token)
