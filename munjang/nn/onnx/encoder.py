"""The encoder as ONNX nodes: the arithmetic of nn/encoder.py over a rectangle of padded texts.

B texts, L longest text, D width, N heads, K width of a head.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from munjang.errors import UnsupportedModel
from munjang.nn.encoder import Block, Embeddings, Encoder, RelativeBias
from munjang.nn.int8.weights import equalisers
from munjang.nn.network import StaticEncoder
from munjang.nn.onnx.graph import Graph

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
MASKED_SCORE = float(np.finfo(np.float32).min)  # finite: with -inf a text without tokens would be NaN

# By the names of nn/encoder.py; a test holds both tables together
ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "gelu": lambda graph, x: graph.call("Gelu", x),
    "gelu_python": lambda graph, x: graph.call("Gelu", x),
    "gelu_new": lambda graph, x: graph.call("Gelu", x, approximate="tanh"),
    "gelu_fast": lambda graph, x: graph.call("Gelu", x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda graph, x: graph.call("Gelu", x, approximate="tanh"),
    "relu": lambda graph, x: graph.call("Relu", x),
    "silu": lambda graph, x: graph.call("Mul", x, graph.call("Sigmoid", x)),
    "swish": lambda graph, x: graph.call("Mul", x, graph.call("Sigmoid", x)),
    "tanh": lambda graph, x: graph.call("Tanh", x),
}


def token_states(graph: Graph, encoder: nn.Module) -> tuple[str, list[str]]:
    """Write the nodes of the token vectors [B, L, D]; return them and the graph's inputs."""
    if isinstance(encoder, StaticEncoder):
        return graph.rows("embedding", encoder.embedding, IDS), [IDS, MASK]
    if not isinstance(encoder, Encoder):
        raise UnsupportedModel(
            "Only architectures that Munjang computes itself are exported to ONNX, and this one runs through "
            "transformers; optimum-cli exports those."
        )
    inputs = [IDS, MASK, *([TYPES] if encoder.shape.num_types > 1 else [])]
    return _Rectangle(graph, encoder).states(), inputs


class _Rectangle:
    """An encoder, written as nodes layer by layer; shared values are written once."""

    def __init__(self, graph: Graph, encoder: Encoder) -> None:
        self.graph, self.encoder, self.shape = graph, encoder, encoder.shape
        types = graph.onnx.TensorProto
        self.int64, self.float32, self.bool = types.INT64, types.FLOAT, types.BOOL
        self.places: str = self._places()
        self.masks: dict[int | None, str] = {}
        self.turns: dict[float, tuple[str, str]] = {}
        self.equal: dict[nn.Module, Tensor] = {}
        if graph.is_int8:
            # without VNNI onnxruntime replaces int8 weights, but not shared ones (ALBERT): 2 · 255 · 63 needs no care
            graph.largest_code = 63 if len(set(encoder.order)) < len(encoder.order) else 127
            with torch.no_grad():
                self.equal = equalisers(encoder)

    def states(self) -> str:
        shape, x = self.shape, self._embeddings(self.encoder.embeddings)
        for layer, place in enumerate(self.encoder.order):
            block = self.encoder.blocks[place]
            assert isinstance(block, Block)
            base = shape.rotary_bases[layer] if shape.rotary_bases else None
            window = shape.windows[layer] if shape.windows else None
            x = self._block(f"blocks.{place}", block, x, base, window)
        return x if self.encoder.final_norm is None else self.graph.norm("final_norm", self.encoder.final_norm, x)

    def _places(self) -> str:
        """Return 0, 1, 2, ... up to the longest text: [L]."""
        graph = self.graph
        length = graph.call("Squeeze", graph.call("Shape", IDS, start=1, end=2))
        return graph.call("Range", graph.index(0), length, graph.index(1))

    def _embeddings(self, table: Embeddings) -> str:
        graph = self.graph
        x = graph.rows("embeddings.word", table.word, IDS)
        if table.segment is not None and self.shape.num_types > 1:
            weight = graph.weight("embeddings.segment.weight", table.segment.weight)
            x = graph.call("Add", x, graph.call("Gather", weight, TYPES))
        elif table.segment is not None:
            x = graph.call("Add", x, graph.weight("embeddings.segment.weight", table.segment.weight[0]))
        if table.position is not None:
            x = graph.call("Add", x, self._positions(graph.weight("embeddings.position", table.position.weight)))
        x = graph.norm("embeddings.norm", table.norm, x)
        return x if table.project is None else graph.linear("embeddings.project", table.project, x)

    def _positions(self, table: str) -> str:
        """Return position vectors [L, D], or [B, L, D] where padding stays at pad_id (RoBERTa)."""
        graph = self.graph
        if self.shape.pad_id is None:  # not Gather by Range, which onnxruntime 1.31 turns into a Slice that fails
            return graph.call("Slice", table, graph.whole(0), graph.call("Shape", IDS, start=1, end=2), graph.whole(0))
        pad = graph.whole(self.shape.pad_id)
        is_token = graph.call("Cast", graph.call("Not", graph.call("Equal", IDS, pad)), to=self.int64)
        counted = graph.call("Mul", graph.call("CumSum", is_token, graph.index(1)), is_token)
        return graph.call("Gather", table, graph.call("Add", counted, pad))

    def _block(self, name: str, block: Block, x: str, base: float | None, window: int | None) -> str:
        graph = self.graph
        if self.shape.is_pre_norm:
            normed = graph.norm(f"{name}.attention_norm", block.attention_norm, x)
            x = graph.call("Add", x, self._attention(name, block, normed, base, window))
            return graph.call("Add", x, self._inner(name, block, graph.norm(f"{name}.inner_norm", block.inner_norm, x)))
        x = graph.call("Add", self._attention(name, block, x, base, window), x)
        x = graph.norm(f"{name}.attention_norm", block.attention_norm, x)
        return graph.norm(f"{name}.inner_norm", block.inner_norm, graph.call("Add", self._inner(name, block, x), x))

    def _attention(self, name: str, block: Block, x: str, base: float | None, window: int | None) -> str:
        graph, heads, width = self.graph, self.shape.num_heads, self.shape.width
        split, together = graph.whole(0, 0, heads, width // heads), graph.whole(0, 0, width)
        parts = graph.split(graph.linear(f"{name}.qkv", block.qkv, x, self.equal.get(block.qkv)), 3)
        query, key, value = (graph.call("Reshape", part, split) for part in parts)  # [B, L, N, K]
        if base is not None:
            query, key = self._turned(query, base), self._turned(key, base)
        query, value = (graph.call("Transpose", part, perm=[0, 2, 1, 3]) for part in (query, value))
        key = graph.call("Transpose", key, perm=[0, 2, 3, 1])
        scores = graph.call("Mul", graph.call("MatMul", query, key), graph.number((width // heads) ** -0.5))
        weights = graph.call("Softmax", graph.call("Add", scores, self._mask(window)), axis=-1)
        seen = graph.call("Transpose", graph.call("MatMul", weights, value), perm=[0, 2, 1, 3])
        return graph.linear(f"{name}.out", block.out, graph.call("Reshape", seen, together))

    def _inner(self, name: str, block: Block, x: str) -> str:
        graph, act = self.graph, ACTIVATIONS[self.shape.activation]
        up = graph.linear(f"{name}.up", block.up, x, self.equal.get(block.up))
        if self.shape.has_gate:
            up, gate = graph.split(up, 2)
            up = graph.call("Mul", act(graph, up), gate)
        else:
            up = act(graph, up)
        return graph.linear(f"{name}.down", block.down, up)

    def _distances(self) -> str:
        """Return the distances, query minus key: [L, L]."""
        graph = self.graph
        rows, columns = (graph.call("Unsqueeze", self.places, graph.whole(axis)) for axis in (1, 0))
        return graph.call("Sub", rows, columns)

    def _mask(self, window: int | None) -> str:
        """Return the mask to add to the scores: [B, 1, 1, L] for padding, [B, N, L, L] with windows or MPNet's bias."""
        if window not in self.masks:
            graph = self.graph
            visible = graph.call("Unsqueeze", graph.call("Cast", MASK, to=self.bool), graph.whole(1, 2))
            if window is not None:
                near = graph.call("LessOrEqual", graph.call("Abs", self._distances()), graph.whole(window))
                visible = graph.call("And", visible, near)
            mask = graph.call("Where", visible, graph.number(0.0), graph.number(MASKED_SCORE))
            if self.encoder.relative is not None:
                mask = graph.call("Add", mask, self._relative(self.encoder.relative))
            self.masks[window] = mask
        return self.masks[window]

    def _relative(self, table: nn.Embedding) -> str:
        """Return MPNet's bias [N, L, L], from a table of all distances."""
        graph, most = self.graph, self.shape.max_tokens
        with torch.no_grad():
            bias_NLL = RelativeBias(table)(most)[0]
        ahead, behind = bias_NLL[:, 0, 1:].flip(-1), bias_NLL[:, :, 0]  # distances -(most - 1) .. -1, and 0 .. most - 1
        by_distance = graph.weight("relative", torch.cat([ahead, behind], dim=-1))
        row = graph.call("Add", self._distances(), graph.whole(most - 1))
        return graph.call("Gather", by_distance, row, axis=1)

    def _turned(self, x: str, base: float) -> str:
        """Rotate by position [B, L, N, K]: rotary embeddings."""
        graph, half = self.graph, self.shape.width // self.shape.num_heads // 2
        if base not in self.turns:
            frequency_K = base ** -(torch.arange(0, 2 * half, 2).float() / (2 * half))
            position = graph.call("Unsqueeze", graph.call("Cast", self.places, to=self.float32), graph.whole(1, 2))
            angle = graph.call(
                "Mul", position, graph.weight(f"frequency:{base}", torch.cat([frequency_K, frequency_K]))
            )
            self.turns[base] = graph.call("Cos", angle), graph.call("Sin", angle)  # [L, 1, K]
        cosine, sine = self.turns[base]
        left, right = graph.split(x, 2)
        crossed = graph.call("Concat", graph.call("Neg", right), left, axis=-1)
        return graph.call("Add", graph.call("Mul", x, cosine), graph.call("Mul", crossed, sine))
