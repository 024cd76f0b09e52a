"""Our ONNX folder: a graph, the facts about it, and the tokenizer and settings as every folder has them.

munjang_onnx.json says what the graph is; model.onnx is the graph itself, with model.onnx.data beside it if it is large.
"""

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file
from torch import nn

from munjang.checkpoint.files import ONNX_FILES, RANGES, Json, read_json, whole
from munjang.checkpoint.model import Model
from munjang.checkpoint.modules import write_json
from munjang.checkpoint.write import write_static_texts, write_texts
from munjang.errors import CheckpointError, InputError, UnsupportedModel, unknown
from munjang.nn.heads import path_of
from munjang.nn.network import PairNetwork, SentenceNetwork
from munjang.nn.onnx.graph import LARGEST, Graph
from munjang.nn.onnx.outputs import pair_outputs, sentence_outputs
from munjang.nn.onnx.session import Facts, OnnxPairs, OnnxSentences
from munjang.nn.pooling import POOLERS

FACTS, GRAPH, _ = ONNX_FILES
FORMAT = 1
DTYPES = ("float32", "int8")
KINDS = {"bi": "SentenceTransformer", "cross": "CrossEncoder"}  # ours, and sentence-transformers' word for it


def is_onnx(folder: Path) -> bool:
    """Whether a folder holds our ONNX export."""
    return (folder / FACTS).is_file()


def compute_options(folder: Path, device: Any, dtype: str | None) -> tuple[Any, str | None]:
    """Device and dtype for a folder: what was asked for, or what an ONNX export is bound to."""
    if not is_onnx(folder):
        return device, dtype
    stored = read_facts(folder)[1].dtype
    if device is not None and not str(device).startswith("cpu"):
        raise InputError(f"{folder} is an ONNX export, which runs on the CPU here, not on {device}.")
    if dtype is not None and dtype != stored:
        raise InputError(f"{folder} was exported in {stored}, not {dtype}; export the model again with that dtype.")
    return "cpu", stored


def read_facts(folder: Path) -> tuple[str, Facts]:
    """The kind of model and what its graph is, checked."""
    path = folder / FACTS
    given = read_json(path)
    if given.get("format") != FORMAT or given.get("kind") not in KINDS:
        raise CheckpointError(f"{path} is of another version of Munjang, or damaged; export the model again.")
    numbers = ("width", "num_outputs", "num_rows")
    counts = {name: given.get(name) for name in ("num_weights", "num_linear")}  # larger than any size may be
    lists = {name: given.get(name, []) for name in ("modes", "modules")}
    is_sound = (
        given.get("dtype") in DTYPES
        and all(type(count) is int and count >= 0 for count in counts.values())
        and isinstance(given.get("digest"), str)
        and isinstance(given.get("includes_prompt", True), bool)
        and all(isinstance(value, list) and all(isinstance(name, str) for name in value) for value in lists.values())
        and set(lists["modes"]) <= set(POOLERS)
    )
    if not is_sound:
        raise CheckpointError(f"{path} is damaged: {given!r:.200}; export the model again.")
    most = given.get("max_tokens")
    return str(given["kind"]), Facts(
        dtype=given["dtype"],
        **{name: whole(given.get(name), f"{path}: {name}", 1) for name in numbers},
        num_weights=given["num_weights"],
        num_linear=given["num_linear"],
        max_tokens=None if most is None else whole(most, f"{path}: max_tokens"),
        pad_id=whole(given.get("pad_id"), f"{path}: pad_id", 0),
        digest=given["digest"],
        modes=tuple(lists["modes"]),
        modules=tuple(lists["modules"]),
        includes_prompt=given.get("includes_prompt", True),
    )


def open_graph(folder: Path, kind: str, pooling: tuple[str, ...] | None = None) -> OnnxSentences | OnnxPairs:
    """The network of a folder, computed by onnxruntime."""
    found, facts = read_facts(folder)
    if found != kind:
        names = {"bi": "a bi-encoder; load it with BiEncoder", "cross": "a cross-encoder; load it with CrossEncoder"}
        raise CheckpointError(f"{folder} is {names[found]}.load.")
    if pooling is not None and pooling != facts.modes:
        raise InputError(f"{folder} has its pooling inside the graph ({', '.join(facts.modes)}); it can't be replaced.")
    return OnnxSentences(folder / GRAPH, facts) if kind == "bi" else OnnxPairs(folder / GRAPH, facts)


def write_onnx(model: Model, folder: Path, dtype: str, function: nn.Module | None = None, limit: int = LARGEST) -> None:
    """Fill an empty folder. `function` is a cross-encoder's activation, which stays outside of the graph."""
    if dtype not in DTYPES:
        raise unknown("dtype of an ONNX export", dtype, DTYPES)
    network = model.network
    if model.network.encoder.is_exported:
        raise UnsupportedModel(f"{model.folder} is an ONNX export already; export the model that it was made of.")
    graph = Graph(dtype == "int8")
    if isinstance(network, SentenceNetwork):
        num_outputs = model.network.num_outputs
        inputs, outputs = sentence_outputs(graph, network, num_outputs)
    elif isinstance(network, PairNetwork):
        num_outputs = model.network.num_outputs
        inputs, outputs = pair_outputs(graph, network, num_outputs)
    else:
        raise UnsupportedModel(f"{model.folder} is scored through transformers, which is not exported to ONNX here.")
    graph.save(folder / GRAPH, inputs, outputs, limit)
    write_json(folder / FACTS, {"format": FORMAT, **_facts(model, dtype, num_outputs)})
    if network.encoder.is_static:
        write_static_texts(model, folder)
    else:
        write_texts(model, folder, model.config, dtype=dtype)
    _write_settings(model, folder, function)


def _facts(model: Model, dtype: str, num_outputs: int) -> Json:
    network, encoder = model.network, model.network.encoder
    digest = network.digest()
    facts = Facts(
        dtype=dtype,
        width=encoder.width,
        num_outputs=num_outputs,
        num_rows=model.network.encoder.vocab_size,
        num_weights=network.num_parameters,
        num_linear=network.num_multiplied,
        max_tokens=encoder.max_tokens,
        pad_id=encoder.uncounted_id or 0,
        # float32 gives the same vectors, so that an index made with either opens with the other
        digest=digest if dtype == "float32" else hashlib.blake2b(f"{digest} {dtype}".encode()).hexdigest()[:32],
    )
    if not isinstance(network, SentenceNetwork):
        return {"kind": "cross", **asdict(facts)}
    behind = {"modes": list(network.modes), "modules": network.module_names, "includes_prompt": network.includes_prompt}
    return {"kind": "bi", **asdict(facts), **behind}


def _write_settings(model: Model, folder: Path, function: nn.Module | None) -> None:
    """config_sentence_transformers.json, and the ranges of int8 vectors."""
    settings: Json = {"prompts": model.prompts, "default_prompt_name": model.default_prompt_name}
    if function is not None:
        settings |= {"model_type": KINDS["cross"], "activation_fn": path_of(function)}
    else:
        newer = {} if model.truncate_dim is None else {"truncate_dim": model.truncate_dim}
        settings |= {"model_type": KINDS["bi"], "similarity_fn_name": model.similarity, **newer}
    write_json(folder / "config_sentence_transformers.json", settings)
    if model.ranges is not None:
        save_file({"ranges": model.ranges}, folder / RANGES)
