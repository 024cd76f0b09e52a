"""Read our ONNX folder: a graph, the facts about it, and the tokenizer and settings as every folder has them.

munjang_onnx.json describes the graph; model.onnx is the graph itself, with model.onnx.data beside it if it is large.
"""

from pathlib import Path
from typing import Any

from munjang.checkpoint.files import ONNX_FILES, read_json, whole
from munjang.errors import CheckpointError, InputError
from munjang.nn.onnx.session import Facts, OnnxPairs, OnnxSentences
from munjang.nn.pooling import POOLERS

FACTS_FILE, GRAPH_FILE, _ = ONNX_FILES
FORMAT_VERSION = 1
DTYPES = ("float32", "int8")
NETWORKS: dict[str, type[OnnxSentences] | type[OnnxPairs]] = {"bi": OnnxSentences, "cross": OnnxPairs}


def is_onnx(folder: Path) -> bool:
    """Tell whether a folder holds our ONNX export."""
    return (folder / FACTS_FILE).is_file()


def compute_options(folder: Path, device: Any, dtype: str | None) -> tuple[Any, str | None]:
    """Return the device and dtype for a folder: those asked for, or those that an ONNX export is bound to."""
    if not is_onnx(folder):
        return device, dtype
    stored = read_facts(folder)[1].dtype
    if device is not None and not str(device).startswith("cpu"):
        raise InputError(f"{folder} is an ONNX export, which runs on the CPU here, not on {device}.")
    if dtype is not None and dtype != stored:
        raise InputError(f"{folder} was exported in {stored}, not {dtype}; export the model again with that dtype.")
    return "cpu", stored


def read_facts(folder: Path) -> tuple[str, Facts]:
    """Read and check the kind of a model and the facts about its graph."""
    path = folder / FACTS_FILE
    stated = read_json(path)
    if stated.get("format") != FORMAT_VERSION or stated.get("kind") not in tuple(NETWORKS):
        raise CheckpointError(f"{path} is from another version of Munjang, or damaged; export the model again.")
    numbers = ("width", "num_outputs", "num_rows")
    counts = {name: stated.get(name) for name in ("num_weights", "num_linear")}  # larger than any size may be
    lists = {name: stated.get(name, []) for name in ("modes", "modules")}
    is_sound = (
        stated.get("dtype") in DTYPES
        and all(type(count) is int and count >= 0 for count in counts.values())
        and isinstance(stated.get("digest"), str)
        and isinstance(stated.get("includes_prompt", True), bool)
        and all(isinstance(value, list) and all(isinstance(name, str) for name in value) for value in lists.values())
        and set(lists["modes"]) <= set(POOLERS)
    )
    if not is_sound:
        raise CheckpointError(f"{path} is damaged: {stated!r:.200}; export the model again.")
    max_tokens = stated.get("max_tokens")
    return str(stated["kind"]), Facts(
        dtype=stated["dtype"],
        **{name: whole(stated.get(name), f"{path}: {name}", 1) for name in numbers},
        num_weights=stated["num_weights"],
        num_linear=stated["num_linear"],
        max_tokens=None if max_tokens is None else whole(max_tokens, f"{path}: max_tokens"),
        pad_id=whole(stated.get("pad_id"), f"{path}: pad_id", 0),
        digest=stated["digest"],
        modes=tuple(lists["modes"]),
        modules=tuple(lists["modules"]),
        includes_prompt=stated.get("includes_prompt", True),
    )


def open_graph(folder: Path, kind: str, pooling: tuple[str, ...] | None = None) -> OnnxSentences | OnnxPairs:
    """Open the network of a folder, computed by onnxruntime."""
    stored_kind, facts = read_facts(folder)
    if stored_kind != kind:
        names = {"bi": "a bi-encoder; load it with BiEncoder", "cross": "a cross-encoder; load it with CrossEncoder"}
        raise CheckpointError(f"{folder} is {names[stored_kind]}.load.")
    if pooling is not None and pooling != facts.modes:
        raise InputError(f"{folder} has its pooling inside the graph ({', '.join(facts.modes)}); it can't be replaced.")
    return NETWORKS[kind](folder / GRAPH_FILE, facts)
