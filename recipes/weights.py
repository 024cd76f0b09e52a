"""Mix the weights of model folders."""

import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeAlias

import torch
from safetensors.torch import load_file, save_file

from munjang.checkpoint.atomic import replacing_folder
from munjang.errors import InputError

Weights: TypeAlias = dict[str, torch.Tensor]
Weight: TypeAlias = float | Sequence[float]  # of a model in a mix
Part: TypeAlias = tuple[Path, Sequence[float]]  # a trained model, and its weights in the mix

LAYER = re.compile(r"\blayer\.(\d+)\.")


def blend(start: Path, *folders: Path, weight: Weight) -> None:
    """Move the start's weights towards the mean of trained ones, which keeps what the start could do besides.

    As WiSE-FT and model soups do (Wortsman et al. 2022). Figures: docs/log.md. `weight` is one number, or several: one
    for the words (and all that is outside the layers), then one for each of equal groups of layers, from the first up.
    """
    *trained, out = folders
    numbers = [weight] if isinstance(weight, int | float) else weight
    mixed(start, [(folder, [number / len(trained) for number in numbers]) for folder in trained], out)


def mixed(start: Path, parts: Sequence[Part], out: Path) -> None:
    """Move the start's weights towards each part, as far as its weights say; other files are those of the first."""
    first, others = _read(start), [_read(folder) for folder, _ in parts]
    mix = {name: first[name].float() for name in (others or [first])[0]}  # a start may have a head besides
    for other, (_, numbers) in zip(others, parts, strict=True):
        weight_of = weights_by_name(mix, numbers)
        for name, value in mix.items():
            mix[name] = value + weight_of[name] * (other[name].float() - first[name].float())
    with replacing_folder(out) as made:  # never the trained weights alone, which a stopped copy would leave
        shutil.copytree(parts[0][0] if parts else start, made, dirs_exist_ok=True)
        save_file(mix, made / "model.safetensors", {"format": "pt"})


def _read(folder: Path) -> Weights:
    if not (folder / "model.safetensors").exists():
        raise InputError(f"{folder} holds no model.safetensors; `munjang export` writes one.")
    return load_file(folder / "model.safetensors")


def weights_by_name(names: Collection[str], numbers: Sequence[float]) -> dict[str, float]:
    """Return the weight in the mix of each tensor."""
    layer_of = {name: int(match[1]) for name in names if (match := LAYER.search(name))}
    outside, *groups = numbers if len(numbers) > 1 else [numbers[0]] * 2
    num_layers = max(layer_of.values(), default=-1) + 1
    return {name: groups[layer_of[name] * len(groups) // num_layers] if name in layer_of else outside for name in names}
