"""Export a model to our ONNX folder, compared with the network it was made of before the folder is put at its target.

`export_onnx(BiEncoder.load(path).model, Path("folder"), "int8").smallest` is the smallest cosine to the network.
"""

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn

from munjang.checkpoint.atomic import write_folder
from munjang.checkpoint.files import RANGES_FILE, Json
from munjang.checkpoint.model import Model
from munjang.checkpoint.modules import write_json
from munjang.checkpoint.onnx import DTYPES, FACTS_FILE, FORMAT_VERSION, GRAPH_FILE, open_graph
from munjang.checkpoint.write import write_static_texts, write_texts
from munjang.errors import CheckpointError, UnsupportedModel, unknown
from munjang.nn.base import VectorNetwork
from munjang.nn.heads import path_of
from munjang.nn.network import PairNetwork, SentenceNetwork
from munjang.nn.onnx.graph import MAX_FILE_BYTES, Graph
from munjang.nn.onnx.outputs import pair_outputs, sentence_outputs
from munjang.nn.onnx.session import Facts
from munjang.nn.threads import run_in_thread
from munjang.text.flat import cumulative, gather
from munjang.text.packing import Packed, pack
from munjang.text.tokenizer import Tokens
from munjang.types import Floats

# The networks that we export: the kind of their folder, and the function that puts their outputs into a graph
GRAPHS: dict[type, tuple[str, Callable[..., Any]]] = {
    SentenceNetwork: ("bi", sentence_outputs),
    PairNetwork: ("cross", pair_outputs),
}
# Real sentences show what 8 bits cost; random ids of every length show a wrong mask, position or window
TEXTS = (
    "A cat sleeps on the sofa.",
    "How do I reset the password of my account?",
    "The committee published its report on Tuesday, two weeks later than planned, and nobody was surprised.",
    "Add salt, stir, and let it simmer for 20 minutes.",
    "Quarterly revenue rose 12 % to $3.4 billion.",
    "오늘 아침에 비가 많이 와서 회사에 늦었다.",
    "이 영화는 배우들의 연기가 좋았지만 이야기가 너무 길었다.",
    "서울에서 부산까지 기차로 얼마나 걸리나요?",
    "Yes",
    "",
)
MAX_RANDOM_TOKENS = 512  # of a random text: longer ones take minutes and show nothing else
SEED = 20261115
# Limits of what rounding explains: cosine to the network itself, and difference of logits relative to the largest one
MIN_COSINE = {"float32": 0.99999, "int8": 0.95}
MAX_DIFFERENCE = {"float32": 1e-4, "int8": 0.2}


@dataclass(frozen=True)
class Agreement:
    """Agreement of a graph with its network: cosines of vectors, or 1 minus the relative difference of logits."""

    num_texts: int
    smallest: float
    mean: float
    is_cosine: bool = True

    def __str__(self) -> str:
        if self.is_cosine:
            return f"smallest cosine {self.smallest:.7f}, mean {self.mean:.7f} over {self.num_texts} texts"
        return f"largest difference of a score {1 - self.smallest:.5%} of the largest score over {self.num_texts} pairs"


def export_onnx(model: Model, target: Path, dtype: str = "float32", activation: nn.Module | None = None) -> Agreement:
    """Write the folder and return its agreement; a graph that differs is an error, and nothing is left behind.

    `activation` is a cross-encoder's own, which is applied outside of the graph.
    """
    agreements: list[Agreement] = []

    def write(folder: Path) -> None:
        write_onnx(model, folder, dtype, activation)
        agreement = compare(model, open_graph(folder, _kind(model)))
        least = MIN_COSINE[dtype] if agreement.is_cosine else 1 - MAX_DIFFERENCE[dtype]
        if not agreement.smallest >= least:  # NaN too
            raise CheckpointError(
                f"{model.folder}: the {dtype} graph differs from the network by more than rounding explains "
                f"({agreement}), so it was not written."
            )
        agreements.append(agreement)

    run_in_thread(lambda: write_folder(target, write))
    return agreements[0]


def write_onnx(
    model: Model, folder: Path, dtype: str, activation: nn.Module | None = None, limit: int = MAX_FILE_BYTES
) -> None:
    """Fill an empty folder. Weights of more than `limit` bytes go into a file of their own."""
    if dtype not in DTYPES:
        raise unknown("dtype of an ONNX export", dtype, DTYPES)
    network = model.network
    if network.encoder.is_exported:
        raise UnsupportedModel(f"{model.folder} is an ONNX export already; export the model that it was made of.")
    if type(network) not in GRAPHS:
        raise UnsupportedModel(f"{model.folder} is scored through transformers, which is not exported to ONNX here.")
    graph = Graph(dtype == "int8")
    _, outputs_of = GRAPHS[type(network)]
    inputs, outputs = outputs_of(graph, network, network.num_outputs)
    graph.save(folder / GRAPH_FILE, inputs, outputs, limit)
    write_json(folder / FACTS_FILE, {"format": FORMAT_VERSION, **_facts(model, dtype)})
    if network.encoder.is_static:
        write_static_texts(model, folder)
    else:
        write_texts(model, folder, model.config, dtype=dtype)
    _write_settings(model, folder, activation)


def _kind(model: Model) -> str:
    return GRAPHS[type(model.network)][0]


def _facts(model: Model, dtype: str) -> Json:
    network, encoder, kind = model.network, model.network.encoder, _kind(model)
    digest = network.digest()
    facts = Facts(
        dtype=dtype,
        width=encoder.width,
        num_outputs=network.num_outputs,
        num_rows=encoder.vocab_size,
        num_weights=network.num_parameters,
        num_linear=network.num_multiplied,
        max_tokens=encoder.max_tokens,
        pad_id=encoder.uncounted_id or 0,
        # float32 gives the same vectors, so that an index made with either opens with the other
        digest=digest if dtype == "float32" else hashlib.blake2b(f"{digest} {dtype}".encode()).hexdigest()[:32],
    )
    if kind == "cross":
        return {"kind": kind, **asdict(facts)}
    vectors = cast(VectorNetwork, network)
    behind = {"modes": list(vectors.modes), "modules": vectors.module_names, "includes_prompt": vectors.includes_prompt}
    return {"kind": kind, **asdict(facts), **behind}


def _write_settings(model: Model, folder: Path, activation: nn.Module | None) -> None:
    """Write config_sentence_transformers.json, and the ranges of int8 vectors."""
    settings: Json = {"prompts": model.prompts, "default_prompt_name": model.default_prompt_name}
    if activation is not None:
        settings |= {"model_type": "CrossEncoder", "activation_fn": path_of(activation)}
    else:
        newer = {} if model.truncate_dim is None else {"truncate_dim": model.truncate_dim}
        settings |= {"model_type": "SentenceTransformer", "similarity_fn_name": model.similarity, **newer}
    write_json(folder / "config_sentence_transformers.json", settings)
    if model.ranges is not None:
        save_file({"ranges": model.ranges}, folder / RANGES_FILE)


def compare(model: Model, graph: nn.Module) -> Agreement:
    """Compare the results of a network and of its graph over one batch."""
    batch, is_cosine = sample(model), _kind(model) == "bi"
    with torch.inference_mode():
        ours, theirs = model.network(batch).float().numpy(), graph(batch).float().numpy()
    agreement = cosines(ours, theirs) if is_cosine else nearness(ours, theirs)
    return Agreement(len(agreement), float(agreement.min()), float(agreement.mean()), is_cosine)


def sample(model: Model) -> Packed:
    """Return sentences or pairs of them, and random ids of many lengths up to the longest that the model reads."""
    tokens, encoder, random = _tokens(model), model.network.encoder, np.random.default_rng(SEED)
    limits = (MAX_RANDOM_TOKENS, model.tokenizer.max_length, encoder.max_tokens)
    max_tokens = min(limit for limit in limits if limit is not None)
    lengths = np.unique(np.geomspace(1, max_tokens, 24).astype(np.int64))
    ids = random.integers(0, encoder.vocab_size, int(lengths.sum()), np.int32)
    types = tokens.types
    if types is not None:
        types = np.concatenate([types, random.integers(0, int(types.max()) + 1, len(ids), np.int32)])
    return pack(
        np.concatenate([tokens.ids, ids]),
        np.concatenate([tokens.lengths, lengths]),
        types,
        pad_id=encoder.uncounted_id,
    )


def _tokens(model: Model) -> Tokens:
    tokenizer = model.tokenizer
    if _kind(model) == "bi":
        return tokenizer(list(TEXTS))
    flat, lengths = tokenizer.bodies(list(TEXTS))
    rows, starts = np.arange(len(TEXTS))[::-1], cumulative(lengths)
    return tokenizer.join(flat, lengths, gather(flat, starts, rows, lengths[rows]), lengths[rows])


def cosines(ours: Floats, theirs: Floats) -> Floats:
    """Return the cosine of each row; two zero vectors are equal."""
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    is_zero = (np.abs(ours).max(axis=1) == 0) & (np.abs(theirs).max(axis=1) == 0)
    near: Floats = np.where(is_zero, 1.0, (ours * theirs).sum(axis=1) / np.maximum(lengths, 1e-30))
    return near


def nearness(ours: Floats, theirs: Floats) -> Floats:
    """Return 1 minus the difference of logits, relative to the largest one."""
    near: Floats = 1 - np.abs(ours - theirs).max(axis=1) / max(float(np.abs(ours).max()), 1e-6)
    return near
