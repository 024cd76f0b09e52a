"""The graph and its tables: each operator beside torch, every name of our network covered."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from munjang.errors import MissingExtra, UnsupportedModel
from munjang.nn import encoder, heads
from munjang.nn.onnx import encoder as nodes
from munjang.nn.onnx import outputs
from munjang.nn.onnx.graph import MAX_FILE_BYTES, Graph, load_onnx
from munjang.nn.onnx.session import open_session

VALUES = np.concatenate([np.linspace(-30, 30, 401), [0.0, -0.0, 1e-8]]).astype(np.float32)


def computed(path: Path, build: Callable[[Graph, str], str], x: Any, is_int8: bool = False) -> Any:
    """What a graph makes of float values [B, L]: its input is of whole numbers, so they come in thousandths."""
    graph = Graph(is_int8)
    thousandths = graph.call("Cast", "input_ids", to=graph.onnx.TensorProto.FLOAT)
    out = build(graph, graph.call("Div", thousandths, graph.number(1000.0)))
    graph.save(path, ["input_ids"], {"out": (out, ["width"])}, MAX_FILE_BYTES)
    return open_session(path, 1).run(["out"], {"input_ids": np.round(x * 1000).astype(np.int64)})[0]


def test_tables_cover_the_network() -> None:
    assert set(nodes.ACTIVATIONS) == set(encoder.ACTIVATIONS)
    assert set(outputs.ACTIVATIONS) == set(heads.ACTIVATIONS)


@pytest.mark.parametrize("name", heads.ACTIVATIONS)
def test_activations_of_heads(name: str, tmp_path: Path) -> None:
    x = np.round(VALUES * 1000)[None] / 1000
    out = computed(tmp_path / "a.onnx", lambda graph, value: outputs.ACTIVATIONS[name](graph, value), x)
    expected = heads.ACTIVATIONS[name]()(torch.from_numpy(x.astype(np.float32))).numpy()
    assert np.abs(out - expected).max() < 1e-5


@pytest.mark.parametrize("name", encoder.ACTIVATIONS)
def test_activations_of_encoders(name: str, tmp_path: Path) -> None:
    x = np.round(VALUES * 1000)[None] / 1000
    out = computed(tmp_path / "a.onnx", lambda graph, value: nodes.ACTIVATIONS[name](graph, value), x)
    assert np.abs(out - encoder.ACTIVATIONS[name](torch.from_numpy(x.astype(np.float32))).numpy()).max() < 1e-5


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("has_residual", [True, False])
@pytest.mark.parametrize("width", [12, 7])
def test_dense(has_bias: bool, has_residual: bool, width: int, tmp_path: Path) -> None:
    layer = heads.Dense(12, width, has_bias, nn.Tanh(), has_residual)
    x = np.random.default_rng(0).integers(-2000, 2000, (3, 12)) / 1000
    out = computed(tmp_path / "a.onnx", lambda graph, value: outputs.layer(graph, "dense", layer, value), x)
    assert np.abs(out - layer(torch.from_numpy(x).float()).detach().numpy()).max() < 1e-5


def test_8_bit_linear(tmp_path: Path) -> None:
    """Within half a step of the codes: a 255th of a row's range, a 127th of a column's largest weight."""
    torch.manual_seed(0)
    layer = nn.Linear(64, 48)
    x = np.random.default_rng(0).integers(-2000, 3000, (5, 64)) / 1000
    x[0], x[1] = 0, x[1] * 100  # nothing at all, and a row a hundred times as large as its neighbours
    out = computed(tmp_path / "a.onnx", lambda graph, value: graph.linear("linear", layer, value), x, is_int8=True)
    exact = layer(torch.from_numpy(x).float()).detach().numpy()
    span_B1 = (x.max(axis=1) - np.minimum(x.min(axis=1), 0))[:, None]
    weight = layer.weight.detach().numpy()
    step_C = np.abs(weight).max(axis=1) / 127
    allowed = (span_B1 / 255 * np.abs(weight).sum(axis=1) + np.abs(x).sum(axis=1)[:, None] * step_C) / 2
    assert (np.abs(out - exact) <= allowed + 1e-4).all()
    assert np.abs(out[0] - exact[0]).max() < 1e-5


def test_large_weights_go_beside(tmp_path: Path) -> None:
    layer = nn.Linear(64, 48)
    graph = Graph()
    x = graph.call("Cast", "input_ids", to=graph.onnx.TensorProto.FLOAT)
    out = graph.linear("linear", layer, x)
    graph.save(tmp_path / "model.onnx", ["input_ids"], {"out": (out, [48])}, limit=1000)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 64 * 48 * 4
    assert (tmp_path / "model.onnx").stat().st_size < 4000
    x_BL = np.arange(64)[None]
    found = open_session(tmp_path / "model.onnx", 1).run(["out"], {"input_ids": x_BL})[0]
    assert np.abs(found - layer(torch.from_numpy(x_BL).float()).detach().numpy()).max() < 1e-3


def test_float32_is_standard_onnx(tmp_path: Path) -> None:
    """Other runtimes read it: no operator of onnxruntime's own, and the checker of the standard passes it."""
    onnx = load_onnx()
    encoder_ = encoder.Encoder(
        encoder.Architecture(50, 16, 2, 2, 24, "gelu", 1e-5, 20, 20, num_types=2, pad_id=0, num_buckets=32)
    )
    graph = Graph()
    states, inputs = nodes.token_states(graph, encoder_)
    graph.save(tmp_path / "a.onnx", inputs, {"out": (states, ["tokens", 16])}, MAX_FILE_BYTES)
    model = onnx.load(tmp_path / "a.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert {(entry.domain, entry.version) for entry in model.opset_import} == {("", 20)}
    assert {node.domain for node in model.graph.node} == {""}


def test_unknown_parts_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match="computes itself"):
        nodes.token_states(Graph(), nn.Linear(2, 2))
    with pytest.raises(UnsupportedModel, match="Bilinear can't be exported"):
        outputs.layer(Graph(), "x", nn.Bilinear(2, 2, 2), "x")


def test_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)  # what Python does for a package that is not there
    with pytest.raises(MissingExtra, match=r"needs onnx: pip install 'munjang\[onnx\]'"):
        Graph()
