"""An ONNX graph under construction: a call adds an operator and returns the name of its output.

Only operators of the standard are used, so that any runtime reads the graph; int8 takes one of onnxruntime's own.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from munjang.errors import MissingExtra
from munjang.types import Array

OPSET = 20  # the first with Gelu; in every onnxruntime since 1.17 (2024)
IR_VERSION = 9  # the file format of that opset
MAX_FILE_BYTES = 1_500_000_000  # protobuf stops at 2 GiB; beyond this weights go into a second file
MIN_EXTERNAL_BYTES = 1024  # smaller weights stay in the graph
TINY = np.finfo(np.float32).tiny
SKIP = "skip"  # the input that says how many leading tokens pooling leaves out
Outputs = dict[str, tuple[str, list[int | str]]]  # name: the value that it is, and its shape behind the batch


def load_onnx() -> Any:
    """Import the package onnx, or say how to install it."""
    try:
        import onnx
    except ImportError as error:
        raise MissingExtra("onnx", "onnx", "Writing an ONNX graph") from error
    return onnx


class Graph:
    """The nodes and weights of a graph; a value is the name of its node's output."""

    def __init__(self, is_int8: bool = False) -> None:
        self.is_int8 = is_int8
        self.largest_code = 127  # of int8 weights
        self.onnx = load_onnx()
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}
        self._scaled: dict[str, tuple[str, str, str]] = {}

    def call(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"{kind}_{len(self._nodes)}"
        node = self.onnx.helper.make_node(kind, list(inputs), [name], name=name, domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def split(self, x: str, parts: int) -> list[str]:
        """Split the last axis into equal parts."""
        name = f"Split_{len(self._nodes)}"
        outputs = [f"{name}_{part}" for part in range(parts)]
        node = self.onnx.helper.make_node("Split", [x], outputs, name=name, axis=-1, num_outputs=parts)
        self._nodes.append(node)
        return outputs

    def weight(self, name: str, tensor: Tensor | Array) -> str:
        """Add a constant, or return the existing one of that name (ALBERT's layers share theirs)."""
        if name not in self._weights:
            values = tensor.detach().float().cpu().numpy() if isinstance(tensor, Tensor) else tensor
            self._weights[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def number(self, value: float) -> str:
        """Add a float32 constant."""
        return self.weight(f"number:{value!r}", np.array(value, np.float32))

    def index(self, value: int) -> str:
        """Add an int64 constant without axes."""
        return self.weight(f"index:{value}", np.array(value, np.int64))

    def whole(self, *values: int) -> str:
        """Add a row of int64 constants: axes, sizes."""
        return self.weight(f"whole:{values}", np.array(values, np.int64))

    def linear(self, name: str, layer: nn.Linear, x: str, equal_D: Tensor | None = None) -> str:
        """Add a linear layer of the encoder, in int8 if asked; `equal_D` are factors that shrink the columns of x."""
        if not self.is_int8:
            return self.plain_linear(name, layer, x)
        weight_ND = layer.weight.detach().float().cpu()
        if equal_D is not None:
            x, weight_ND = self.call("Mul", x, self.weight(f"{name}.shrink", 1 / equal_D)), weight_ND * equal_D
        out = self._product(name, weight_ND.numpy().T, x)
        return out if layer.bias is None else self.call("Add", out, self.weight(f"{name}.bias", layer.bias))

    def plain_linear(self, name: str, layer: nn.Linear, x: str) -> str:
        """Add a linear layer in float32, as all layers after pooling are."""
        out = self.call("MatMul", x, self.weight(f"{name}.weight", layer.weight.detach().T))
        return out if layer.bias is None else self.call("Add", out, self.weight(f"{name}.bias", layer.bias))

    def norm(self, name: str, layer: nn.Module, x: str) -> str:
        """Add a layer norm; an identity in its place returns its input."""
        if isinstance(layer, nn.Identity):
            return x
        assert isinstance(layer, nn.LayerNorm)
        inputs = [x, self.weight(f"{name}.weight", layer.weight)]
        if layer.bias is not None:
            inputs.append(self.weight(f"{name}.bias", layer.bias))
        return self.call("LayerNormalization", *inputs, axis=-1, epsilon=layer.eps)

    def rows(self, name: str, table: nn.Embedding, ids: str) -> str:
        """Add a look-up in an embedding table, which int8 stores with one scale per row."""
        if not self.is_int8:
            return self.call("Gather", self.weight(f"{name}.weight", table.weight), ids)
        values = table.weight.detach().float().cpu().numpy()
        scale = np.maximum(np.abs(values).max(axis=1, keepdims=True) / 127, TINY)
        codes = self.call("Gather", self.weight(f"{name}.codes", np.round(values / scale).astype(np.int8)), ids)
        scales = self.call("Gather", self.weight(f"{name}.scale", scale), ids)
        return self.call("Mul", self.call("Cast", codes, to=self.onnx.TensorProto.FLOAT), scales)

    def _product(self, name: str, weight: Array, x: str) -> str:
        """Add x · W with int8 weights (a scale per column) and uint8 activations (a range per token).

        x = scale · (code - zero) in every token, so x · W = scale · (code · W) - scale · zero · (sums of W's columns).
        One range for the whole batch, as quantize_dynamic takes it, errs six times as much and makes a text's
        vector depend on its neighbours (docs/log.md, 2026-11-15).
        """
        scale_N = np.maximum(np.abs(weight).max(axis=0) / self.largest_code, TINY).astype(np.float32)
        codes = np.round(weight / scale_N).astype(np.int8)
        code_TD, scale_T1, shift_T1 = self._codes(x, weight.shape[0])
        # a zero of each layer's own: where a CPU lacks VNNI, onnxruntime replaces it together with the weights
        zeros = [self.weight("zero", np.array(0, np.uint8)), self.weight(f"{name}.zero", np.array(0, np.int8))]
        scales = [self.number(1.0), self.weight(f"{name}.scale", scale_N)]
        inputs = (code_TD, self.weight(f"{name}.codes", codes), *scales, *zeros)
        product_TN = self.call("MatMulIntegerToFloat", *inputs, domain="com.microsoft")
        sums = self.weight(f"{name}.sums", (codes.astype(np.float32) * scale_N).sum(axis=0))
        out_TN = self.call("Sub", self.call("Mul", product_TN, scale_T1), self.call("Mul", shift_T1, sums))
        size = self.call("Concat", self.call("Shape", x, end=-1), self.whole(weight.shape[1]), axis=0)
        return self.call("Reshape", out_TN, size)

    def _codes(self, x: str, width: int) -> tuple[str, str, str]:
        """Add uint8 codes of every token, with its scale and with scale · zero; once per value."""
        if x not in self._scaled:
            axis, zero, types = self.whole(1), self.number(0.0), self.onnx.TensorProto
            x_TD = self.call("Reshape", x, self.whole(-1, width))
            highest = self.call("Max", self.call("ReduceMax", x_TD, axis, keepdims=0), zero)  # 0 is within the range
            lowest = self.call("Min", self.call("ReduceMin", x_TD, axis, keepdims=0), zero)
            span = self.call("Max", self.call("Sub", highest, lowest), self.number(1e-12))
            scale_T = self.call("Mul", span, self.number(1 / 255))
            zero_T = self.call("Round", self.call("Neg", self.call("Div", lowest, scale_T)))
            code = self.call("QuantizeLinear", x_TD, scale_T, self.call("Cast", zero_T, to=types.UINT8), axis=0)
            shift_T = self.call("Mul", scale_T, zero_T)
            self._scaled[x] = code, self.call("Unsqueeze", scale_T, axis), self.call("Unsqueeze", shift_T, axis)
        return self._scaled[x]

    def save(self, path: Path, inputs: list[str], outputs: Outputs, limit: int) -> None:
        """Write the graph; with more than `limit` bytes of weights those go into a file beside it."""
        make, types = self.onnx.helper, self.onnx.TensorProto
        named = [make.make_node("Identity", [value], [name]) for name, (value, _) in outputs.items()]
        # an input per text is a row [B], all others are [B, L]
        taken = [
            make.make_tensor_value_info(name, types.INT64, ["texts"] if name == SKIP else ["texts", "tokens"])
            for name in inputs
        ]
        returned = [
            make.make_tensor_value_info(name, types.FLOAT, ["texts", *shape]) for name, (_, shape) in outputs.items()
        ]
        graph = make.make_graph([*self._nodes, *named], "munjang", taken, returned, list(self._weights.values()))
        opsets = [make.make_opsetid("", OPSET)] + ([make.make_opsetid("com.microsoft", 1)] if self.is_int8 else [])
        model = make.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="munjang")
        size = sum(len(weight.raw_data) for weight in self._weights.values())
        beside = {"save_as_external_data": True, "location": f"{path.name}.data", "size_threshold": MIN_EXTERNAL_BYTES}
        self.onnx.save(model, path, **(beside if size > limit else {}))


@dataclass(frozen=True)
class Node:
    """A float value of a graph, with the arithmetic of a tensor."""

    graph: Graph
    name: str

    def __add__(self, other: "Node") -> "Node":
        return Node(self.graph, self.graph.call("Add", self.name, other.name))

    def __mul__(self, other: "Node") -> "Node":
        return Node(self.graph, self.graph.call("Mul", self.name, other.name))

    def __truediv__(self, other: "Node") -> "Node":
        return Node(self.graph, self.graph.call("Div", self.name, other.name))

    def sqrt(self) -> "Node":
        """Return the square root."""
        return Node(self.graph, self.graph.call("Sqrt", self.name))

    def clamp(self, min: float) -> "Node":
        """Return the value, but at least `min`."""
        return Node(self.graph, self.graph.call("Max", self.name, self.graph.number(min)))
