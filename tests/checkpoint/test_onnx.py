"""Folders of exports: damaged, half-copied, of the other kind; replaced by other models and replacing them."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder, checkpoint
from munjang.checkpoint.export import export_onnx, write_onnx
from munjang.errors import CheckpointError, InputError, MissingExtra
from tests.checkpoint.folders import TEXTS, copy, difference, edit

pytestmark = pytest.mark.filterwarnings("ignore")
Make = Callable[..., Path]


@pytest.fixture(scope="module")
def export(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a tiny BERT."""
    target = tmp_path_factory.mktemp("onnx") / "bert"
    export_onnx(BiEncoder.load(make("bert"), device="cpu").model, target)
    return target


@pytest.fixture
def folder(export: Path, tmp_path: Path) -> Path:
    """A copy of it, to be broken."""
    return copy(export, tmp_path / "model")


def refuse(folder: Path, match: str, kind: type[Exception] = CheckpointError, **options: Any) -> None:
    with pytest.raises(kind, match=match):
        BiEncoder.load(folder, **options)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_cut_off_graph(folder: Path, share: float) -> None:
    path = folder / "model.onnx"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    refuse(folder, r"model\.onnx is missing, damaged or cut off .* export it again")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "config.json"])
def test_missing_file(folder: Path, name: str) -> None:
    (folder / name).unlink()
    refuse(folder, name.replace(".", r"\."))


def test_other_bytes(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(np.random.default_rng(0).bytes(10_000))
    refuse(folder, "damaged or cut off")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"kind": "tri"},
        {"kind": ["bi"]},
        {"width": -1},
        {"num_outputs": "many"},
        {"num_rows": None},
        {"pad_id": 0.5},
        {"max_tokens": [1]},
        {"dtype": "int4"},
        {"digest": 7},
        {"modes": "mean"},
        {"modes": ["median"]},
        {"modules": [1]},
        {"includes_prompt": "no"},
        {"num_linear": ...},
        {"num_weights": -1},
        {"num_weights": True},
    ],
)
def test_damaged_facts(folder: Path, changes: dict[str, Any]) -> None:
    edit(folder / "munjang_onnx.json", **changes)
    refuse(folder, r"munjang_onnx\.json")


def test_large_models_are_within_reason(folder: Path) -> None:
    edit(folder / "munjang_onnx.json", num_weights=560_000_000)
    assert BiEncoder.load(folder).info()["parameters"] == 560_000_000


def test_facts_of_another_graph(folder: Path) -> None:
    edit(folder / "munjang_onnx.json", num_outputs=31)
    refuse(folder, "other inputs and outputs than its description says")
    (folder / "munjang_onnx.json").write_text("[")
    refuse(folder, "can't be read as JSON")


def test_bound_options(export: Path) -> None:
    refuse(export, "exported in float32, not bfloat16", InputError, dtype="bfloat16")
    refuse(export, "runs on the CPU here, not on cuda", InputError, device="cuda")
    refuse(export, r"pooling inside the graph \(mean\)", InputError, pooling="cls")
    assert BiEncoder.load(export, device="cpu", dtype="float32", pooling="mean", threads=2).dimension == 32


def test_kinds(export: Path, make: Make, tmp_path: Path) -> None:
    assert checkpoint.kind(export) == "bi"
    with pytest.raises(CheckpointError, match=r"is a bi-encoder; load it with BiEncoder\.load"):
        CrossEncoder.load(export)
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1), device="cpu")
    export_onnx(scorer.model, tmp_path / "cross", activation=scorer.activation)
    assert checkpoint.kind(tmp_path / "cross") == "cross"
    refuse(tmp_path / "cross", r"is a cross-encoder; load it with CrossEncoder\.load")


def test_models_take_each_others_place(make: Make, tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert"), device="cpu")
    target = tmp_path / "model"
    model.save(target)
    (target / "notes.txt").write_text("mine")
    export_onnx(model.model, target)
    assert not (target / "model.safetensors").exists()
    assert difference(BiEncoder.load(target).encode(TEXTS), model.encode(TEXTS)) < 2e-5
    model.save(target)
    assert {path.name for path in target.glob("*onnx*")} == set()
    assert BiEncoder.load(target).info()["engine"] == "munjang (packed)"
    assert (target / "notes.txt").read_text() == "mine"
    (target / "model.onnx").write_text("of somebody else")
    model.save(target)
    assert (target / "model.onnx").read_text() == "of somebody else"


def test_large_models_have_their_weights_beside(make: Make, tmp_path: Path) -> None:
    model = BiEncoder.load(make("bert"), device="cpu")
    (tmp_path / "onnx").mkdir()
    write_onnx(model.model, tmp_path / "onnx", "float32", limit=1000)
    assert (tmp_path / "onnx" / "model.onnx.data").stat().st_size > 10_000
    moved = Path(shutil.move(tmp_path / "onnx", tmp_path / "moved"))
    assert difference(BiEncoder.load(moved).encode(TEXTS), model.encode(TEXTS)) < 2e-5
    (moved / "model.onnx.data").unlink()
    refuse(moved, "damaged or cut off")


def test_loading_needs_onnxruntime_only(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert BiEncoder.load(export).encode("one").shape == (32,)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    refuse(export, r"needs onnxruntime: pip install 'munjang\[onnx\]'", MissingExtra)


def test_graphs_run_no_code(folder: Path) -> None:
    """An operator that calls Python, as onnxruntime's extensions have it, is unknown here."""
    import onnx

    model = onnx.load(folder / "model.onnx")
    (last,) = (node for node in model.graph.node if node.output[0] == "sentence_embedding")
    last.op_type, last.domain = "PyOp", "ai.onnx.contrib"
    last.attribute.append(onnx.helper.make_attribute("module", "os"))
    model.opset_import.append(onnx.helper.make_opsetid("ai.onnx.contrib", 1))
    onnx.save(model, folder / "model.onnx")
    refuse(folder, "damaged or cut off .*(PyOp|ai.onnx.contrib)")


def test_weights_outside_of_the_folder_are_refused(make: Make, tmp_path: Path) -> None:
    import onnx

    model = BiEncoder.load(make("bert"), device="cpu")
    folder = tmp_path / "onnx"
    folder.mkdir()
    write_onnx(model.model, folder, "float32", limit=1000)
    shutil.copy(folder / "model.onnx.data", tmp_path / "secret")
    graph = onnx.load(folder / "model.onnx", load_external_data=False)
    for weight in graph.graph.initializer:
        for entry in weight.external_data:
            entry.value = "../secret" if entry.key == "location" else entry.value
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    refuse(folder, "damaged or cut off")


def test_a_graph_that_fails_later_says_so(folder: Path) -> None:
    import onnx

    model = onnx.load(folder / "model.onnx")
    for weight in model.graph.initializer:
        if weight.name == "embeddings.position":  # two positions are left
            weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight)[:2], weight.name))
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(CheckpointError, match=r"model\.onnx can't be computed"):
        BiEncoder.load(folder).encode("a text of more than two tokens")
