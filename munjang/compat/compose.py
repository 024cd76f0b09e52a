"""From a model of ours to modules under their names, and back, over the same weights."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer as RustTokenizer
from torch import nn

from munjang import checkpoint
from munjang.bi_encoder import BiEncoder
from munjang.checkpoint.files import read_json_if
from munjang.compat.environment import import_module_class
from munjang.compat.loading import full_device
from munjang.compat.modules.layers import AROUND
from munjang.compat.modules.pooling import Pooling
from munjang.compat.modules.static import StaticEmbedding
from munjang.compat.modules.transformer import Transformer
from munjang.nn.network import SentenceNetwork, StaticEncoder
from munjang.text.tokenizer import Tokenizer

ROUTERS = ("Router", "Asym")


def blocks_of(facade: BiEncoder) -> list[nn.Module]:
    """Return the modules of a bi-encoder under their names."""
    network: Any = facade.network
    if network.encoder.is_static and not facade.model.config:
        rust = RustTokenizer.from_str(facade.tokenizer.rust.to_str())
        blocks: list[nn.Module] = [StaticEmbedding.around(rust, network.encoder.table)]
    else:
        pooling = Pooling(network.encoder.width, network.modes, network.includes_prompt)
        blocks = [Transformer.around(facade.model), pooling]
    return [*blocks, *(AROUND[type(module)](module) for module in getattr(network, "tail", ()))]


def loaded_blocks(folder: Path) -> tuple[list[nn.Module], dict[str, Any]] | None:
    """Return the modules of a folder with a Router, and its settings; None for other folders."""
    path = folder / "modules.json"
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    if not any(row["type"].rpartition(".")[2] in ROUTERS for row in rows):
        return None
    classes: list[Any] = [import_module_class(row["type"], str(folder)) for row in rows]
    blocks = [kind.load(str(folder), row["path"]) for kind, row in zip(classes, rows, strict=True)]
    return blocks, read_json_if(folder / "config_sentence_transformers.json")


def composed(blocks: Iterable[nn.Module]) -> BiEncoder | None:
    """Return the bi-encoder that modules make, or None where one of them is not ours."""
    first, *rest = blocks
    if type(first) is StaticEmbedding:
        return _static(first, rest)
    if type(first) is not Transformer or first.is_scorer or not rest or type(rest[0]) is not Pooling:
        return None
    tail = _tail(rest[1:])
    if tail is None:
        return None
    parameter = next(first.parameters())
    network = SentenceNetwork(first.auto_model.encoder, rest[0].modes, tail, rest[0].include_prompt)
    model = replace(first.stored, network=network, layout="sentence-transformers")
    return BiEncoder(model, full_device(parameter.device), parameter.dtype)


def _static(first: StaticEmbedding, rest: list[nn.Module]) -> BiEncoder | None:
    tail = _tail(rest)
    if tail is None:
        return None
    encoder = StaticEncoder(first.embedding.weight)
    encoder.embedding.weight = first.embedding.weight
    tokenizer = Tokenizer(RustTokenizer.from_str(first.tokenizer.to_str()), None, has_special=False)
    network = SentenceNetwork(encoder, ("mean",), tail)
    model = checkpoint.Model(network, tokenizer, "sentence-transformers static", Path("(made of modules)"))
    return BiEncoder(model, full_device(first.embedding.weight.device), torch.float32)


def _tail(blocks: list[nn.Module]) -> list[nn.Module] | None:
    kinds = {around.__self__ for around in AROUND.values()}  # type: ignore[attr-defined]
    heads: list[Any] = [block.to_head() if type(block) in kinds else None for block in blocks]  # type: ignore[operator]
    return None if any(head is None for head in heads) else heads


def follow(facade: BiEncoder, blocks: Iterable[nn.Module]) -> None:
    """Take over what was set on a Pooling."""
    for block in blocks:
        if isinstance(block, Pooling) and hasattr(facade.network, "modes"):
            facade.network.modes, facade.network.includes_prompt = block.modes, block.include_prompt
