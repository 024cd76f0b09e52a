"""Heads as ONNX nodes: pooling, dense layers, norms, unit length, classification heads.

B texts, L longest text, D width, C labels.
"""

from collections.abc import Callable, Sequence

import numpy as np
from torch import nn

from munjang.errors import UnsupportedModel
from munjang.nn.heads import ClassificationHead, Dense, LayerNorm, Normalize
from munjang.nn.network import ModularHead, PairNetwork, SentenceNetwork
from munjang.nn.onnx.encoder import MASK, token_states
from munjang.nn.onnx.graph import SKIP, Graph, Node, Outputs
from munjang.nn.pooling import POOLERS, Texts

VECTORS, RAW, TOKENS, LOGITS = "sentence_embedding", "raw_embedding", "token_embeddings", "logits"
LOWEST_FLOAT = float(np.finfo(np.float32).min)


# By the names of nn/heads.py; a test holds both tables together
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


class GraphTexts(Texts[Node]):
    """The pooled tokens of a padded batch, as nodes: [B, L] for one number per token.

    `skips`: an input says how many leading tokens of each text do not count.
    """

    def __init__(self, graph: Graph, states: str, skips: bool) -> None:
        self.graph, self.states = graph, states
        self.counted = graph.call("Cast", MASK, to=graph.onnx.TensorProto.FLOAT)  # 1 for a token that counts, else 0
        self._places = Node(graph, graph.call("CumSum", self.counted, graph.index(1)))
        if skips:
            skip = graph.call("Unsqueeze", graph.call("Cast", SKIP, to=graph.onnx.TensorProto.FLOAT), graph.whole(1))
            self.counted = graph.call("Mul", self.counted, self._is("Greater", self._places.name, skip))

    @property
    def count(self) -> Node:
        return self.total_weight(Node(self.graph, self.counted)).clamp(min=1.0)

    @property
    def places(self) -> Node:
        return self._places

    def first(self) -> Node:
        return self._at(self.graph.call("CumSum", self.counted, self.graph.index(1)))

    def last(self) -> Node:
        return self._at(self.graph.call("CumSum", self.counted, self.graph.index(1), reverse=1))

    def highest(self) -> Node:
        graph, lowest = self.graph, self.graph.number(LOWEST_FLOAT)
        counts = graph.call("Cast", self.counted, to=graph.onnx.TensorProto.BOOL)
        shown = graph.call("Where", graph.call("Unsqueeze", counts, graph.whole(2)), self.states, lowest)
        highest = graph.call("ReduceMax", shown, graph.whole(1), keepdims=0)
        return Node(graph, graph.call("Where", graph.call("Equal", highest, lowest), graph.number(0.0), highest))

    def total(self, weights: Node | None = None) -> Node:
        weighed = self.counted if weights is None else self.graph.call("Mul", self.counted, weights.name)
        row = self.graph.call("Unsqueeze", weighed, self.graph.whole(1))
        product = self.graph.call("MatMul", row, self.states)
        return Node(self.graph, self.graph.call("Squeeze", product, self.graph.whole(1)))

    def total_weight(self, weights: Node) -> Node:
        weighed = self.graph.call("Mul", self.counted, weights.name)
        return Node(self.graph, self.graph.call("ReduceSum", weighed, self.graph.whole(1)))

    def _at(self, counts: str) -> Node:
        """Return the token with a count of 1, among those that count."""
        return self.total(Node(self.graph, self._is("Equal", counts, self.graph.number(1.0))))

    def _is(self, comparison: str, a: str, b: str) -> str:
        return self.graph.call("Cast", self.graph.call(comparison, a, b), to=self.graph.onnx.TensorProto.FLOAT)


def pooled(graph: Graph, states: str, modes: Sequence[str], skips: bool = False) -> str:
    """Return one vector per text: each mode's result, side by side."""
    texts = GraphTexts(graph, states, skips)
    vectors = [POOLERS[mode](texts).name for mode in modes]
    return vectors[0] if len(vectors) == 1 else graph.call("Concat", *vectors, axis=-1)


def layer(graph: Graph, name: str, module: nn.Module, x: str) -> str:
    """Add a module over sentence vectors."""
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
    """Add an activation of nn/heads.py."""
    return ACTIVATIONS[type(module).__name__](graph, x)


def sentence_outputs(graph: Graph, network: SentenceNetwork, width: int) -> tuple[list[str], Outputs]:
    """Return a bi-encoder's inputs and outputs: vectors, vectors before a final Normalize, token vectors."""
    states, inputs = token_states(graph, network.encoder)
    skips = not network.includes_prompt
    vectors = raw = pooled(graph, states, network.modes, skips)
    for index, module in enumerate(network.tail):
        raw, vectors = vectors, layer(graph, f"tail.{index}", module, vectors)
    outputs: Outputs = {VECTORS: (vectors, [width])}
    if network.is_unit:
        outputs[RAW] = (raw, [width])
    outputs[TOKENS] = (states, ["tokens", "width"])
    return [*inputs, *([SKIP] if skips else [])], outputs


def pair_outputs(graph: Graph, network: PairNetwork, num_labels: int) -> tuple[list[str], Outputs]:
    """Return a cross-encoder's inputs and outputs: logits."""
    states, inputs = token_states(graph, network.encoder)
    head = network.head
    if isinstance(head, ModularHead):
        values = pooled(graph, states, head.modes)
        for index, module in enumerate(head.layers):
            values = layer(graph, f"head.{index}", module, values)
        return inputs, {LOGITS: (values, [num_labels])}
    assert isinstance(head, ClassificationHead)
    values = graph.plain_linear("head.dense", head.dense, pooled(graph, states, (head.shape.pooling,)))
    values = activated(graph, head.activation, values)
    if head.norm is not None:
        values = graph.norm("head.norm", head.norm, values)
    return inputs, {LOGITS: (graph.plain_linear("head.out", head.out, values), [num_labels])}
