"""What stands behind the encoder as ONNX nodes: pooling, dense layers, norms, unit length, classification heads.

B texts, L longest text, D width, C labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from munjang.errors import UnsupportedModel
from munjang.nn.heads import ClassificationHead, Dense, LayerNorm, Normalize
from munjang.nn.network import ModularHead, PairNetwork, SentenceNetwork
from munjang.nn.onnx.encoder import MASK, token_states
from munjang.nn.onnx.graph import SKIP, Graph, Outputs

VECTORS, RAW, TOKENS, LOGITS = "sentence_embedding", "raw_embedding", "token_embeddings", "logits"
LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class Texts:
    """What every pooling needs: which tokens count, how many they are, and where they stand."""

    states: str  # [B, L, D]
    counted: str  # [B, L] float: 1 for a token that counts, else 0
    number: str  # [B, 1] float: how many do, at least 1
    places: str  # [B, L] float: 1 for the first token of the text, 2 for the second, ...


def _weighted(graph: Graph, texts: Texts, weights_BL: str) -> str:
    """The sum of a text's tokens, each times its weight: [B, D]."""
    row = graph.call("Unsqueeze", weights_BL, graph.whole(1))
    return graph.call("Squeeze", graph.call("MatMul", row, texts.states), graph.whole(1))


def first(graph: Graph, texts: Texts) -> str:
    """The first token that counts: the one with as many before it as count until there, which is one."""
    so_far = graph.call("CumSum", texts.counted, graph.index(1))
    is_first = graph.call("Cast", graph.call("Equal", so_far, graph.number(1.0)), to=graph.onnx.TensorProto.FLOAT)
    return _weighted(graph, texts, graph.call("Mul", is_first, texts.counted))


def last(graph: Graph, texts: Texts) -> str:
    """The last token that counts."""
    left = graph.call("CumSum", texts.counted, graph.index(1), reverse=1)
    is_last = graph.call("Cast", graph.call("Equal", left, graph.number(1.0)), to=graph.onnx.TensorProto.FLOAT)
    return _weighted(graph, texts, graph.call("Mul", is_last, texts.counted))


def mean(graph: Graph, texts: Texts) -> str:
    """Average over each text's own tokens; no tokens: the zero vector."""
    return graph.call("Div", _weighted(graph, texts, texts.counted), texts.number)


def mean_sqrt_length(graph: Graph, texts: Texts) -> str:
    """Sum over the square root of the number of tokens."""
    return graph.call("Div", _weighted(graph, texts, texts.counted), graph.call("Sqrt", texts.number))


def weighted_mean(graph: Graph, texts: Texts) -> str:
    """Average in which the n-th token of the text counts n times."""
    weights = graph.call("Mul", texts.counted, texts.places)
    total = graph.call("Max", graph.call("ReduceSum", weights, graph.whole(1)), graph.number(1.0))
    return graph.call("Div", _weighted(graph, texts, weights), total)


def maximum(graph: Graph, texts: Texts) -> str:
    """The largest value of each component; no tokens: the zero vector."""
    counts = graph.call("Cast", texts.counted, to=graph.onnx.TensorProto.BOOL)
    shown = graph.call("Where", graph.call("Unsqueeze", counts, graph.whole(2)), texts.states, graph.number(LOWEST))
    highest = graph.call("ReduceMax", shown, graph.whole(1), keepdims=0)
    is_hidden = graph.call("Equal", highest, graph.number(LOWEST))
    return graph.call("Where", is_hidden, graph.number(0.0), highest)


# By the names of nn/pooling.py and nn/heads.py; a test holds both pairs of tables together
POOLERS: dict[str, Callable[[Graph, Texts], str]] = {
    "cls": first,
    "max": maximum,
    "mean": mean,
    "mean_sqrt_len_tokens": mean_sqrt_length,
    "weightedmean": weighted_mean,
    "lasttoken": last,
}
ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "Identity": lambda graph, x: x,
    "Sigmoid": lambda graph, x: graph.call("Sigmoid", x),
    "Tanh": lambda graph, x: graph.call("Tanh", x),
    "ReLU": lambda graph, x: graph.call("Relu", x),
    "GELU": lambda graph, x: graph.call("Gelu", x),
    "SiLU": lambda graph, x: graph.call("Mul", x, graph.call("Sigmoid", x)),
    "LeakyReLU": lambda graph, x: graph.call("LeakyRelu", x, alpha=0.01),
    "ELU": lambda graph, x: graph.call("Elu", x),
    "SELU": lambda graph, x: graph.call("Selu", x),
    "CELU": lambda graph, x: graph.call("Celu", x),
    "ReLU6": lambda graph, x: graph.call("Clip", x, graph.number(0.0), graph.number(6.0)),
    "Mish": lambda graph, x: graph.call("Mul", x, graph.call("Tanh", graph.call("Softplus", x))),
    "Softplus": lambda graph, x: graph.call("Softplus", x),
    "Softsign": lambda graph, x: graph.call("Softsign", x),
    "LogSigmoid": lambda graph, x: graph.call("Neg", graph.call("Softplus", graph.call("Neg", x))),
    "Hardtanh": lambda graph, x: graph.call("Clip", x, graph.number(-1.0), graph.number(1.0)),
    "Hardsigmoid": lambda graph, x: graph.call("HardSigmoid", x, alpha=1 / 6, beta=0.5),
    "Hardswish": lambda graph, x: graph.call("HardSwish", x),
    "Softmax": lambda graph, x: graph.call("Softmax", x, axis=-1),
    "LogSoftmax": lambda graph, x: graph.call("LogSoftmax", x, axis=-1),
}


def pooled(graph: Graph, states: str, modes: Sequence[str], skips: bool = False) -> str:
    """One vector per text: each mode's result, side by side. `skips`: an input says how many tokens do not count."""
    to_float = graph.onnx.TensorProto.FLOAT
    counted = graph.call("Cast", MASK, to=to_float)
    places = graph.call("CumSum", counted, graph.index(1))
    if skips:
        skip = graph.call("Unsqueeze", graph.call("Cast", SKIP, to=to_float), graph.whole(1))
        behind = graph.call("Cast", graph.call("Greater", places, skip), to=to_float)
        counted = graph.call("Mul", counted, behind)
    number = graph.call("Max", graph.call("ReduceSum", counted, graph.whole(1)), graph.number(1.0))
    texts = Texts(states, counted, number, places)
    vectors = [POOLERS[mode](graph, texts) for mode in modes]
    return vectors[0] if len(vectors) == 1 else graph.call("Concat", *vectors, axis=-1)


def layer(graph: Graph, name: str, module: nn.Module, x: str) -> str:
    """A module over sentence vectors."""
    if isinstance(module, nn.Dropout):
        return x
    if isinstance(module, Normalize):
        length = graph.call("ReduceL2", x, graph.whole(1))
        return graph.call("Div", x, graph.call("Max", length, graph.number(1e-12)))
    if isinstance(module, LayerNorm):
        return graph.norm(name, module.norm, x)
    if isinstance(module, Dense):
        out = activated(graph, module.activation, graph.plain_linear(name, module.linear, x))
        if not module.has_residual:
            return out
        residual = x if module.residual is None else graph.plain_linear(f"{name}.residual", module.residual, x)
        return graph.call("Add", out, residual)
    raise UnsupportedModel(f"{type(module).__name__} can't be exported to ONNX.")


def activated(graph: Graph, module: nn.Module, x: str) -> str:
    """An activation of nn/heads.py."""
    return ACTIVATIONS[type(module).__name__](graph, x)


def sentence_outputs(graph: Graph, network: SentenceNetwork, width: int) -> tuple[list[str], Outputs]:
    """The inputs and outputs of a bi-encoder: vectors, the same before the last Normalize, token vectors."""
    states, inputs = token_states(graph, network.encoder)
    skips = not network.includes_prompt
    vectors = raw = pooled(graph, states, network.modes, skips)
    for place, module in enumerate(network.tail):
        raw, vectors = vectors, layer(graph, f"tail.{place}", module, vectors)
    outputs: Outputs = {VECTORS: (vectors, [width])}
    if network.is_unit:
        outputs[RAW] = (raw, [width])
    outputs[TOKENS] = (states, ["tokens", "width"])
    return [*inputs, *([SKIP] if skips else [])], outputs


def pair_outputs(graph: Graph, network: PairNetwork, num_labels: int) -> tuple[list[str], Outputs]:
    """The inputs and outputs of a cross-encoder: logits."""
    states, inputs = token_states(graph, network.encoder)
    head = network.head
    if isinstance(head, ModularHead):
        values = pooled(graph, states, head.modes)
        for place, module in enumerate(head.layers):
            values = layer(graph, f"head.{place}", module, values)
        return inputs, {LOGITS: (values, [num_labels])}
    assert isinstance(head, ClassificationHead)
    values = graph.plain_linear("head.dense", head.dense, pooled(graph, states, (head.shape.pooling,)))
    values = activated(graph, head.activation, values)
    if head.norm is not None:
        values = graph.norm("head.norm", head.norm, values)
    return inputs, {LOGITS: (graph.plain_linear("head.out", head.out, values), [num_labels])}
