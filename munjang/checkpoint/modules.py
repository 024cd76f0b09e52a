"""Read and write the parts of a sentence-transformers folder, each of which has its own subfolder.

Types are known by their class name alone (`sentence_transformers.models.Dense` in 2.x, `...base.modules.dense.Dense` in
6.x); nothing is imported by the path that a folder gives. To add one: two functions, a line in MODULES and one in
MODULE_WRITERS.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from munjang.checkpoint.files import Json, Weights, read_json, read_json_if, whole
from munjang.errors import CheckpointError, UnsupportedModel, unknown
from munjang.nn.blank import blank
from munjang.nn.heads import Dense, LayerNorm, Normalize, activation, check_weight, path_of
from munjang.nn.pooling import MAX_MODES, POOLERS

# Pooling as booleans (1.x to 5.x), in the order in which several are put side by side
POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class Pooling:
    """Pooling as 1_Pooling/config.json states it."""

    modes: tuple[str, ...]
    includes_prompt: bool = True


@dataclass(frozen=True)
class LogitScore:
    """A decoder's answer words as a score."""

    yes: int
    no: int | None


def read_pooling(folder: Path) -> Pooling:
    """Read the pooling of any version; none switched on means mean, as in sentence-transformers."""
    path = folder / "config.json"
    config = read_json(path)
    stated = config.get("pooling_mode")
    if stated is None:
        strange = [key for key in config if key.startswith("pooling_mode_") and config[key] and key not in POOLING_KEYS]
        if strange:
            raise CheckpointError(f"{unknown('pooling', strange[0], POOLING_KEYS)} ({path})")
        stated = [mode for key, mode in POOLING_KEYS.items() if config.get(key)] or ["mean"]
    modes = [stated] if isinstance(stated, str) else stated
    if not isinstance(modes, list) or not modes:
        raise CheckpointError(f"{path}: pooling_mode should be a name or a list, not {stated!r}.")
    for mode in modes:
        if not isinstance(mode, str) or mode not in POOLERS:
            raise CheckpointError(f"{unknown('pooling', mode, POOLERS)} ({path})")
    if len(modes) > MAX_MODES:
        raise CheckpointError(f"{path}: pooling_mode names {len(modes):,} modes; at most {MAX_MODES} are taken.")
    return Pooling(tuple(modes), bool(config.get("include_prompt", True)))


def write_pooling(folder: Path, pooling: Pooling, width: int) -> None:
    """Write the pooling as booleans if their fixed order expresses it, else in the newer form."""
    in_order = tuple(mode for mode in POOLING_KEYS.values() if mode in pooling.modes)
    config: Json = {
        "word_embedding_dimension": width,
        **{key: mode in pooling.modes for key, mode in POOLING_KEYS.items()},
    }
    if in_order != pooling.modes:
        config = {"embedding_dimension": width, "pooling_mode": list(pooling.modes)}
    write_json(folder / "config.json", {**config, "include_prompt": pooling.includes_prompt})


def read_dense(folder: Path, over: str = "sentence_embedding") -> Dense:
    """Read a linear layer; its activation must be on the list of nn/heads.py."""
    config = read_json(folder / "config.json")
    _check_names(config, folder, (over, "scores"), over)
    function = activation(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    wide, narrow = (
        whole(config.get(key), f"{folder / 'config.json'}: {key}") for key in ("in_features", "out_features")
    )
    with blank():
        layer = Dense(wide, narrow, bool(config.get("bias", True)), function, bool(config.get("use_residual", False)))
    fill_layer(layer, folder)
    return layer


def write_dense(folder: Path, layer: Dense, names: dict[str, str] | None = None) -> None:
    """Write a linear layer as 2.x did; `names` adds the 6.x keys for where it reads and writes."""
    linear = layer.linear
    config = {"in_features": linear.in_features, "out_features": linear.out_features, "bias": linear.bias is not None}
    newer = {**({"use_residual": True} if layer.has_residual else {}), **(names or {})}
    write_json(folder / "config.json", {**config, "activation_function": path_of(layer.activation), **newer})
    write_tensors(folder / "model.safetensors", layer.state_dict())


def read_norm(folder: Path) -> LayerNorm:
    """Read a layer norm over sentence vectors."""
    width = whole(read_json(folder / "config.json").get("dimension"), f"{folder / 'config.json'}: dimension")
    with blank():
        layer = LayerNorm(width)
    fill_layer(layer, folder)
    return layer


def write_norm(folder: Path, layer: LayerNorm) -> None:
    """Write a layer norm."""
    write_json(folder / "config.json", {"dimension": layer.norm.normalized_shape[0]})
    write_tensors(folder / "model.safetensors", layer.state_dict())


def read_normalize(folder: Path, over: str = "sentence_embedding") -> Normalize:
    """Check the folder, if there is one: early versions wrote none, late ones name what is normalized."""
    _check_names(read_json_if(folder / "config.json"), folder, (over,), over)
    return Normalize()


def write_normalize(folder: Path, layer: Normalize) -> None:
    """Make an empty folder, as 2.x did."""
    folder.mkdir()


def read_logit_score(folder: Path) -> LogitScore:
    """Read the ids of the answer words."""
    path = folder / "config.json"
    config = read_json(path)
    no = config.get("false_token_id")
    return LogitScore(
        whole(config.get("true_token_id"), f"{path}: true_token_id", 0),
        None if no is None else whole(no, f"{path}: false_token_id", 0),
    )


def write_logit_score(folder: Path, yes: int, no: int | None) -> None:
    """Write the ids of the answer words."""
    write_json(folder / "config.json", {"true_token_id": yes, "false_token_id": no})


def read_dropout(folder: Path) -> nn.Dropout:
    """Read a dropout, which does nothing outside training."""
    probability = read_json_if(folder / "config.json").get("dropout", 0.2)
    if not isinstance(probability, int | float) or not 0 <= probability <= 1:
        raise CheckpointError(f"{folder / 'config.json'}: dropout should lie between 0 and 1, not {probability!r}.")
    return nn.Dropout(probability)


def write_dropout(folder: Path, layer: nn.Dropout) -> None:
    """Write a dropout."""
    write_json(folder / "config.json", {"dropout": layer.p})


MODULES: dict[str, Callable[[Path], Any]] = {
    "Pooling": read_pooling,
    "Dense": read_dense,
    "LayerNorm": read_norm,
    "Normalize": read_normalize,
    "Dropout": read_dropout,
    "LogitScore": read_logit_score,
}
MODULE_WRITERS: dict[type[nn.Module], Callable[[Path, Any], None]] = {
    Dense: write_dense,
    LayerNorm: write_norm,
    Normalize: write_normalize,
    nn.Dropout: write_dropout,
}


def write_module(folder: Path, module: nn.Module) -> None:
    """Write a module behind the pooling into its subfolder."""
    write = MODULE_WRITERS.get(type(module))
    if write is None:
        raise UnsupportedModel(f"No folder layout is known for {type(module).__name__}.")
    write(folder, module)


def _check_names(config: Json, folder: Path, outputs: tuple[str, ...], over: str) -> None:
    """Refuse modules that read or write anything but `over`: sentence_embedding or token_embeddings."""
    source = config.get("module_input_name") or over
    target = config.get("module_output_name") or source
    if source != over or target not in outputs:
        raise UnsupportedModel(f"{folder} turns {source!r} into {target!r}; here modules are over {over!r} only.")


def fill_layer(layer: nn.Module, folder: Path) -> None:
    """Put the weights of a module's folder into it, checked for names, shapes and NaN."""
    tensors = dict(Weights(folder))
    want = {key: tuple(value.shape) for key, value in layer.state_dict().items()}
    have = {key: tuple(value.shape) for key, value in tensors.items()}
    if want != have:
        raise CheckpointError(
            f"{folder}: the weights are {have}, but config.json asks for {want}; they are not of one model."
        )
    for name, tensor in tensors.items():
        check_weight(f"{folder}: the tensor {name}", tensor)
    layer.load_state_dict({key: value.to(torch.float32) for key, value in tensors.items()}, assign=True)


def write_json(path: Path, value: object) -> None:
    """Write JSON as people read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write tensors as safetensors, floats in float32, marked as transformers wants it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    floats = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in floats.items()}
    save_file(plain, path, metadata={"format": "pt"})
