"""Build a network from config.json and weights: ours if the family is known, else through transformers."""

import math
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from munjang.checkpoint.adapter import Merged, base_of, is_adapter, source_of, weights_of
from munjang.checkpoint.files import MAX_SIZE, Json, Weights, has_weights, read_json, weight_files, whole
from munjang.checkpoint.settings import EncoderSettings
from munjang.errors import CheckpointError, UnsupportedModel
from munjang.nn import fallback
from munjang.nn.base import Network
from munjang.nn.blank import blank
from munjang.nn.encoder import Architecture, Encoder, TokenEncoder
from munjang.nn.families import FAMILIES
from munjang.nn.families.base import Family, Names, head_names
from munjang.nn.heads import ClassificationHead, HeadShape, check_weight
from munjang.nn.network import PairNetwork
from munjang.nn.pooling import check as check_pooling
from munjang.nn.words import WordShape

MAX_LAYERS = 1000  # more than any model has; a damaged number would fill the memory before it is noticed
MAX_LABELS = 100_000
COUNTS = {re.compile(r"(^n|num)_.*(layer|block|group)s?$|layers$"): MAX_LAYERS, re.compile("^num_labels$"): MAX_LABELS}
Wrapped = TypeVar("Wrapped", bound=fallback.TransformersModel)
MAY_BE_ZERO = {"num_types", "num_buckets", "embedding_width"}


def read_config(folder: Path, settings: EncoderSettings) -> Json:
    """Read config.json and add a model_type to old ones, which only name their class."""
    if is_adapter(folder) and has_weights(folder):
        raise UnsupportedModel(
            f"{folder} holds whole weights and a PEFT adapter; merge it (merge_and_unload) and save the whole model, "
            "or remove one of the two."
        )
    path = source_of(folder, "config.json") / "config.json"
    config = {**read_json(path), **settings.config}
    names = config.get("architectures")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise CheckpointError(f"{path}: architectures should be a list of names, not {names!r:.60}.")
    if not config.get("model_type"):
        titles = {family.title: kind for kind, family in FAMILIES.items()}
        title = (names or [""])[0].partition("For")[0].removesuffix("Model")
        if title not in titles:
            raise UnsupportedModel(f"{path} names no model_type, so its architecture is unknown.")
        config["model_type"] = titles[title]
    return config


def family_of(config: Json) -> Family | None:
    """Return the family of a config.json, if we compute it ourselves."""
    return FAMILIES.get(str(config.get("model_type")))


def read_shape(folder: Path, config: Json) -> Architecture | None:
    """Read and check the sizes that config.json states; None where the family is not ours."""
    family = family_of(config)
    if family is None:
        return None
    path = folder / "config.json"
    for key in ("num_hidden_layers", "n_layers", "num_hidden_groups", "inner_group_num"):
        if config.get(key) is not None and whole(config[key], f"{path}: {key}") > MAX_LAYERS:
            raise CheckpointError(f"{path}: {key} is {config[key]}, and no model has more than {MAX_LAYERS}.")
    try:
        shape = family.read(config)
    except KeyError as error:
        raise CheckpointError(f"{path} does not say {error.args[0]!r}, which {config['model_type']} needs.") from error
    except UnsupportedModel as error:
        raise UnsupportedModel(f"{path}: {error}") from error
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointError(f"{path} has a value that can't be used: {error}") from error
    check_fields(shape, path)
    whole(shape.pad_id or 0, f"{path}: pad_token_id", 0)
    if {len(shape.windows), len(shape.rotary_bases)} - {0, shape.num_layers}:
        raise CheckpointError(f"{path}: layer_types should name all {shape.num_layers} layers, and no more.")
    for window in shape.windows:
        whole(window or 0, f"{path}: local_attention", 0)
    if not all(0 < base < math.inf for base in shape.rotary_bases):
        raise CheckpointError(f"{path}: the bases of the rotary positions should be positive: {shape.rotary_bases}.")
    return shape


def check_fields(shape: Architecture | HeadShape | WordShape, path: Path) -> None:
    """Refuse sizes and settings of a wrong type or out of range."""
    for field in fields(shape):
        value = getattr(shape, field.name)
        if field.type is int:
            whole(value, f"{path}: {field.name}", 0 if field.name in MAY_BE_ZERO else 1)
        elif field.type is float:
            largest = 1.0 if "dropout" in field.name else MAX_SIZE
            if not isinstance(value, int | float) or not 0 <= value <= largest:
                raise CheckpointError(f"{path}: {field.name} should be a number from 0 to {largest}, not {value!r}.")
        elif field.type is bool and not isinstance(value, bool):
            raise CheckpointError(f"{path}: {field.name} should be true or false, not {value!r}.")


def load_encoder(folder: Path, config: Json) -> TokenEncoder:
    """Load an encoder, ours or one of transformers."""
    family, shape = family_of(config), read_shape(folder, config)
    if family is None or shape is None:
        return _fallback(folder, config, "AutoModel", fallback.TransformersEncoder)
    weights = weights_of(folder)
    encoder = _build(shape, weights, folder)
    fill(encoder, family.names(shape), weights, family.prefix, folder)
    return encoder


def _build(shape: Architecture, weights: Mapping[str, Tensor], folder: Path) -> Encoder:
    """Build an encoder of this shape, its weights still to be filled in: no more blocks than there are tensors."""
    num_blocks = max(shape.shared) + 1 if shape.shared else shape.num_layers
    if num_blocks > len(weights):
        raise CheckpointError(
            f"{folder}: config.json asks for {num_blocks:,} blocks, and the weights have {len(weights):,} "
            "tensors; they are not of one model."
        )
    with blank():
        return Encoder(shape)


def load_classifier(folder: Path, config: Json) -> Network:
    """Load a scorer of pairs: encoder and head of a known family, or one whole transformers model."""
    family, shape = family_of(config), read_shape(folder, config)
    if family is None or shape is None:
        if (config.get("architectures") or [""])[0].endswith("ForCausalLM"):
            raise UnsupportedModel(
                f"{folder} is a language model without a classification head; a decoder scores pairs with one, or from "
                "a folder of sentence-transformers that says by LogitScore which words are its answers."
            )
        return _fallback(folder, config, "AutoModelForSequenceClassification", fallback.TransformersClassifier)
    weights = weights_of(folder)
    if not any(name.startswith(family.head_names["out"]) for name in weights):
        raise CheckpointError(
            f"{folder} has no classification head ({family.head_names['out']}): it is an encoder, not a cross-encoder. "
            "Start one with CrossEncoder.create(folder, num_labels=1) and train it, or load it with BiEncoder.load."
        )
    encoder = _build(shape, weights, folder)
    fill(encoder, family.names(shape), weights, family.prefix, folder)
    path = folder / "config.json"
    try:
        head_shape = family.read_head(config)
        check_fields(head_shape, path)
        check_pooling((head_shape.pooling,))
        with blank():
            head = ClassificationHead(head_shape)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} has a value for its head that can't be used: {error!r}") from error
    fill(head, head_names(head.shape, family.head_names), weights, "", folder)
    return PairNetwork(encoder, head)


def _fallback(folder: Path, config: Json, task: str, wrap: type[Wrapped]) -> Wrapped:
    return wrap(load_fallback(folder, config, task), pad_id(folder, config))


def load_fallback(folder: Path, config: Json, task: str) -> nn.Module:
    """Load a transformers model and check its weights for NaN."""
    base = base_of(folder) if is_adapter(folder) else folder
    paths = weight_files(base)  # the error for a folder without any says more than transformers' own
    stored = read_json(base / "config.json")
    overrides = {key: value for key, value in config.items() if stored.get(key) != value}
    _check_counts(config, base / "config.json")
    num_bytes = sum(path.stat().st_size for path in paths)
    model = fallback.load(base, task, str(config.get("model_type")), overrides, num_bytes)
    if is_adapter(folder):
        Merged(folder, Weights(base)).put_into(model.state_dict())
    for name, tensor in model.state_dict().items():
        check_weight(f"{folder}: the tensor {name}", tensor, is_float=False)
    return model


def _check_counts(config: Json, path: Path) -> None:
    """Refuse numbers of layers that would take minutes to build, also in the parts of a config.json."""
    for key, value in config.items():
        if isinstance(value, dict):
            _check_counts(value, path)
        elif isinstance(value, int | float):
            limit = next((limit for pattern, limit in COUNTS.items() if pattern.search(key)), math.inf)
            if value > limit:
                raise CheckpointError(f"{path}: {key} is {value}, and no model has more than {limit:,}.")


def pad_id(folder: Path, config: Json) -> int:
    """Return the id that fills a rectangle; it is masked, so any id does where none is stated."""
    stated = config.get("pad_token_id")
    return 0 if stated is None or stated == -1 else whole(stated, f"{folder / 'config.json'}: pad_token_id", 0)


def fill(module: nn.Module, names: Names, weights: Mapping[str, Tensor], prefix: str, folder: Path) -> None:
    """Put a folder's tensors into a network, each checked for its shape and for NaN."""
    known = {_modern(name.removeprefix(prefix)): name for name in weights}
    known |= {_modern(name): name for name in weights}
    state = {}
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    missing = [theirs for ours in expected for theirs in names[ours] if theirs not in known]
    if missing:
        listed = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise CheckpointError(f"{folder} lacks the tensors {listed}; config.json and the weights are not of one model.")
    for ours, shape in expected.items():
        parts = [weights[known[theirs]] for theirs in names[ours]]
        wanted = (shape[0] // len(parts), *shape[1:])
        for theirs, part in zip(names[ours], parts, strict=True):
            check_weight(f"{folder}: the tensor {theirs}", part)
            if tuple(part.shape) != wanted:
                raise CheckpointError(
                    f"{folder}: the tensor {theirs} is {tuple(part.shape)}, but config.json asks for {wanted}; "
                    "they are not of one model."
                )
        tensor = parts[0] if len(parts) == 1 else torch.cat(parts)
        state[ours] = tensor.to(torch.float32).contiguous()
    module.load_state_dict(state, assign=True)
    module.requires_grad_(True)


def _modern(name: str) -> str:
    """Rename gamma and beta, as checkpoints converted from TensorFlow before 2020 call a norm's tensors."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def unfill(module: nn.Module, names: Names) -> dict[str, Tensor]:
    """Return a network's tensors under transformers' names, fused ones taken apart: the reverse of `fill`."""
    tensors = {}
    for ours, tensor in module.state_dict().items():
        theirs = names[ours]
        for name, part in zip(theirs, tensor.detach().float().cpu().chunk(len(theirs)), strict=True):
            tensors[name] = part.contiguous().clone()
    return tensors
