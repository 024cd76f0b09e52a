"""LoRA adapters of PEFT: an adapter's folder is read as its base with the adapter merged into the weights.

W' = W + s B A, with s = alpha / r, or alpha / sqrt(r) for rsLoRA; embeddings: W' = W + s (B A)^T. peft is not needed.
"""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from munjang.checkpoint.files import ADAPTER_FILES, Json, Weights, load_json, read_json, read_tensors
from munjang.checkpoint.hub import Hub, resolve
from munjang.errors import CheckpointError, UnsupportedModel

CONFIG_FILE = "adapter_config.json"
PREFIX = "base_model.model."
# Parts of a tensor's name: linear layers have weights of their own, embeddings have bare parameters
PAIRS = {".lora_A.weight": ".lora_B.weight", ".lora_embedding_A": ".lora_embedding_B"}
OTHER_FORMULAS = ("use_dora", "lora_bias", "use_qalora", "layer_replication", "target_parameters", "use_bdlora")


def is_adapter(folder: Path) -> bool:
    """Tell whether the folder holds an adapter instead of whole weights."""
    return (folder / CONFIG_FILE).is_file()


def base_of(folder: Path) -> Path:
    """Return the folder of the encoder that an adapter was trained on; a Hub name is looked up or downloaded."""
    path = folder / CONFIG_FILE
    config = read_json(path)
    name = config.get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise CheckpointError(f"{path}: base_model_name_or_path should name the model that the adapter changes.")
    beside = folder / name
    base = beside if beside.is_dir() else resolve(name, Hub(None, config.get("revision")))
    if (base / "modules.json").is_file():  # its encoder may have a folder of its own
        modules = load_json(base / "modules.json")
        first = modules[0] if isinstance(modules, list) and modules else None
        inner = base / str(first.get("path") or "") if isinstance(first, dict) else base
        base = inner if inner.resolve().is_relative_to(base.resolve()) else base
    if is_adapter(base):
        raise UnsupportedModel(f"{folder} is an adapter of {base}, itself an adapter; merge and save that one first.")
    return base


def source_of(folder: Path, name: str) -> Path:
    """Return the folder that has a file: the adapter's own, else its base's."""
    return folder if (folder / name).is_file() or not is_adapter(folder) else base_of(folder)


def weights_of(folder: Path) -> Mapping[str, Tensor]:
    """Return the tensors of a folder; those of an adapter's folder are the base's, merged."""
    return Merged(folder, Weights(base_of(folder))) if is_adapter(folder) else Weights(folder)


class Merged(Mapping[str, Tensor]):
    """The tensors of a base, with an adapter merged into them as they are read."""

    def __init__(self, folder: Path, base: Mapping[str, Tensor]) -> None:
        self.folder, self.base = folder, base
        self.config = _read_config(folder)
        path = next((folder / name for name in ADAPTER_FILES if (folder / name).is_file()), None)
        if path is None:
            raise CheckpointError(f"{folder} has {CONFIG_FILE}, but neither {' nor '.join(ADAPTER_FILES)}.")
        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in read_tensors(path).items()}
        self.deltas: dict[str, tuple[str, Tensor, Tensor, bool]] = {}  # a tensor: its module, A, B, if transposed
        self.replaced: dict[str, Tensor] = {}  # modules_to_save and biases
        for name, tensor in tensors.items():
            first = next((part for part in PAIRS if name.endswith(part)), None)
            if first is not None:
                module, other = name.removesuffix(first), name.removesuffix(first) + PAIRS[first]
                if other not in tensors:
                    raise CheckpointError(f"{path} has {name}, but no {other}.")
                is_transposed = "embedding" in first or bool(self.config.get("fan_in_fan_out"))
                self.deltas[self._name_there(f"{module}.weight")] = (module, tensor, tensors[other], is_transposed)
            elif not name.endswith(tuple(PAIRS.values())):
                if "lora_" in name:
                    raise UnsupportedModel(f"{path} has {name}, which we do not merge; merge it with peft.")
                self.replaced[self._name_there(name.replace(".modules_to_save", ""), is_new=True)] = tensor

    def _name_there(self, name: str, is_new: bool = False) -> str:
        """Return the base's name of a tensor: files of a base have a prefix more or less, such as `bert.`."""
        if name in self.base:
            return name
        for there in self.base:
            if _is_same(there, name):
                return there
        if is_new:
            return name
        raise CheckpointError(f"{self.folder} changes {name}, which its base {base_of(self.folder)} does not have.")

    def __getitem__(self, name: str) -> Tensor:
        if name in self.replaced:
            return self.replaced[name]
        if name not in self.deltas:
            return self.base[name]
        module, first, second, is_transposed = self.deltas[name]
        weight = self.base[name].float()
        delta = second.float() @ first.float() * self._scale(module, first, second)
        delta = delta.T if is_transposed else delta
        if delta.shape != weight.shape:
            raise CheckpointError(
                f"{self.folder}: the adapter changes {name} by {tuple(delta.shape)}, but it is {tuple(weight.shape)}."
            )
        return weight + delta

    def _scale(self, module: str, first: Tensor, second: Tensor) -> float:
        rank = first.shape[0]
        if second.ndim != 2 or first.ndim != 2 or second.shape[1] != rank:
            raise CheckpointError(f"{self.folder}: the two parts of the adapter of {module} do not fit each other.")
        alpha = _of_module(self.config.get("alpha_pattern"), module, self.config.get("lora_alpha", 8))
        if not isinstance(alpha, int | float) or isinstance(alpha, bool):
            raise CheckpointError(f"{self.folder / CONFIG_FILE}: lora_alpha should be a number, not {alpha!r}.")
        return alpha / (math.sqrt(rank) if self.config.get("use_rslora") else rank)

    def __iter__(self) -> Iterator[str]:
        yield from self.base
        yield from (name for name in self.replaced if name not in self.base)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @torch.no_grad()
    def put_into(self, state: dict[str, Tensor]) -> None:
        """Change the tensors of a network that was loaded from the base."""
        for name in (*self.deltas, *self.replaced):
            here = name if name in state else next((own for own in state if _is_same(own, name)), None)
            if here is None:
                raise CheckpointError(f"{self.folder} changes {name}, which the network does not have.")
            state[here].copy_(self[name])


def _is_same(name: str, other: str) -> bool:
    """Tell whether two names of a tensor differ only by a prefix."""
    return name.endswith(f".{other}") or other.endswith(f".{name}")


def _read_config(folder: Path) -> Json:
    path = folder / CONFIG_FILE
    config = read_json(path)
    if config.get("peft_type") != "LORA" or any(config.get(key) for key in OTHER_FORMULAS):
        named = next((key for key in OTHER_FORMULAS if config.get(key)), config.get("peft_type"))
        raise UnsupportedModel(
            f"{path} holds an adapter of the kind {named!r}; LoRA is merged. Merge this one with peft "
            "(merge_and_unload), and save the whole model."
        )
    return config


def _of_module(pattern: Any, module: str, default: Any) -> Any:
    """Return a module's own value, from a table of the ends of names as peft matches them."""
    for key, value in (pattern or {}).items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return default
