"""What a loaded model is: its sizes, its description, its fingerprint."""

import hashlib

import torch
from torch import nn

from munjang.checkpoint.compact import FORMAT
from munjang.checkpoint.model import Model
from munjang.errors import CheckpointError, InputError
from munjang.nn.encoder import Encoder
from munjang.nn.fallback import CausalScorer, TransformersModel
from munjang.nn.heads import ClassificationHead, Dense, path_of
from munjang.nn.network import ModularHead, SentenceNetwork, StaticEncoder
from munjang.nn.onnx.session import OnnxModel, OnnxPairs, OnnxSentences
from munjang.nn.rectangle import Rectangle

RERANK_WEIGHT = "munjang_rerank_weight"  # key of a cross-encoder's config.json


def encoder_of(model: Model) -> nn.Module:
    """The part of a model that reads tokens."""
    network = model.network
    return network if isinstance(network, Rectangle) else network.encoder


def token_width(encoder: nn.Module) -> int:
    """Components of a token vector."""
    if isinstance(encoder, Encoder):
        return encoder.shape.width
    if isinstance(encoder, StaticEncoder):
        return encoder.embedding.embedding_dim
    assert isinstance(encoder, Rectangle)
    return encoder.width


def width_of(model: Model) -> int:
    """Components of a sentence vector."""
    network: SentenceNetwork | OnnxSentences = model.network
    if isinstance(network, OnnxSentences):
        return network.encoder.facts.num_outputs
    width = token_width(network.encoder) * len(network.modes)
    for module in network.tail:
        width = module.linear.out_features if isinstance(module, Dense) else width
    return width


def module_names(model: Model) -> list[str]:
    """What follows the pooling of a bi-encoder."""
    network: SentenceNetwork | OnnxSentences = model.network
    if isinstance(network, OnnxSentences):
        return network.module_names
    return [type(module).__name__ for module in network.tail]


def num_labels_of(model: Model) -> int:
    """Scores that a cross-encoder gives a pair."""
    network = model.network
    if isinstance(network, CausalScorer):
        return 1
    if isinstance(network, OnnxPairs):
        return network.encoder.facts.num_outputs
    if isinstance(network, TransformersModel):
        return int(network.model.config.num_labels)  # type: ignore[union-attr, arg-type]  # transformers' attribute
    if isinstance(network.head, ModularHead):
        last = network.head.layers[-1]
        assert isinstance(last, Dense)
        return last.linear.out_features
    return int(network.head.shape.num_labels)


def max_tokens_of(encoder: nn.Module) -> int | None:
    """The longest text that the positions allow; None: any."""
    if isinstance(encoder, Encoder):
        return encoder.shape.max_tokens
    return encoder.max_tokens if isinstance(encoder, Rectangle) else None


def check_length(model: Model, tokens: int | None, num_special: int) -> None:
    """Refuse a limit that leaves no room for text, or that the positions do not reach."""
    encoder = encoder_of(model)
    most = max_tokens_of(encoder)
    if isinstance(tokens, bool) or not isinstance(tokens, int | None):
        raise InputError(f"max_length should be a whole number or None, not {tokens!r}.")
    if tokens is not None and tokens <= num_special:
        raise InputError(f"max_length must leave room for text beside {num_special} special tokens, not {tokens}.")
    if most is not None and (tokens is None or tokens > most):
        raise InputError(f"max_length can be at most {most}, which is how many positions the model has, not {tokens}.")


def vocab_size_of(model: Model) -> int:
    """Rows of the embedding table."""
    encoder = encoder_of(model)
    if isinstance(encoder, Encoder):
        return encoder.shape.vocab_size
    if isinstance(encoder, StaticEncoder):
        return encoder.embedding.num_embeddings
    assert isinstance(encoder, Rectangle)
    return encoder.num_rows


def describe(model: Model) -> dict[str, object]:
    """What bi- and cross-encoders have in common, for `info`."""
    encoder = encoder_of(model)
    facts: dict[str, object] = {
        "folder": str(model.folder),
        "layout": model.layout,
        "format": "onnx" if isinstance(encoder, OnnxModel) else FORMAT if model.is_compact else "float",
        "architecture": model.config.get("model_type", "static"),
        "engine": encoder.engine if isinstance(encoder, Rectangle) else "munjang (packed)",
        "parameters": num_parameters(model.network),
        "vocabulary": vocab_size_of(model),
        "tokenizer": model.tokenizer.path,
    }
    if isinstance(encoder, Rectangle):
        facts["padding"] = f"{encoder.waste:.1%} of what was computed so far"
    if isinstance(encoder, Encoder):
        shape = encoder.shape
        facts |= {"layers": shape.num_layers, "width": shape.width, "heads": shape.num_heads}
    return facts


def num_parameters(network: nn.Module) -> int:
    """Weights of a network, those inside a graph included."""
    if isinstance(network, OnnxSentences | OnnxPairs):
        return network.encoder.facts.num_weights
    return sum(parameter.numel() for parameter in network.parameters())


def _numbers(module: nn.Module) -> tuple[object, ...]:
    """What else than its weights decides what a module gives."""
    if isinstance(module, Encoder):
        shape = module.shape
        sizes = (shape.num_heads, shape.activation, shape.norm_eps, shape.shared, shape.pad_id)
        return (*sizes, shape.rotary_bases, shape.windows)
    if isinstance(module, SentenceNetwork):
        return (module.modes, module.includes_prompt)
    if isinstance(module, ClassificationHead):
        return (module.shape.pooling,)
    if isinstance(module, CausalScorer):
        return (module.yes, module.no)
    if isinstance(module, Dense):
        return (module.has_residual,)
    return (module.modes,) if isinstance(module, ModularHead) else ()


def network_digest(network: nn.Module) -> str:
    """A hash of weights and modules; a graph has that of the model it was made of.

    Weights count in bfloat16, so that an index made on a GPU is one with the same model on a CPU, in float32.
    """
    if isinstance(network, OnnxSentences | OnnxPairs):
        return network.encoder.facts.digest
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().to("cpu", torch.bfloat16).contiguous().view(torch.int16).numpy().data)
    for module in network.modules():
        digest.update(repr((path_of(module), *_numbers(module))).encode())
    return digest.hexdigest()


def fingerprint(model: Model) -> str:
    """A hash of everything that decides the results: weights, modules and tokenizer."""
    digest = hashlib.blake2b(network_digest(model.network).encode(), digest_size=16)
    tokenizer = model.tokenizer
    digest.update(repr((tokenizer.max_length, tokenizer.dropped, tokenizer.has_types)).encode())
    digest.update(model.tokenizer.rust.to_str().encode())
    return digest.hexdigest()


def stated_weight(model: Model) -> float:
    """A cross-encoder's share when it orders what a retrieval found, as config.json states it; 1 where it does not."""
    stated = model.config.get(RERANK_WEIGHT, 1.0)
    if isinstance(stated, bool) or not isinstance(stated, (int, float)) or not 0 <= stated <= 1:
        where = model.folder / "config.json"
        raise CheckpointError(f"{where}: {RERANK_WEIGHT} should be a number from 0 to 1, not {stated!r:.60}.")
    return float(stated)
