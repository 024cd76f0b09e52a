"""Folders of weights: in between of others, and in parts that fit the limits of a transfer."""

import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from munjang.checkpoint.folders import replacing_folder

LAYER = re.compile(r"\blayer\.(\d+)\.")


def blend(start: Path, *folders: Path, share: float | Sequence[float]) -> None:
    """Weights on the way from the start to the mean of trained ones: what the start could do besides comes back.

    As WiSE-FT and model soups do (Wortsman et al. 2022). Figures: docs/log.md. `share` is one number, or several: that
    of the words (and all that is outside the layers), then those of equal parts of the layers from the first one up.
    """
    *trained, out = folders
    first, *others = (load_file(folder / "model.safetensors") for folder in (start, *trained))
    share_of = shares(others[0], [share] if isinstance(share, int | float) else share)
    mixed = {
        name: first[name].float().lerp(torch.stack([other[name].float() for other in others]).mean(0), share_of[name])
        for name in others[0]
    }
    with replacing_folder(out) as made:  # never the trained weights alone, which a stopped copy would leave
        shutil.copytree(trained[0], made, dirs_exist_ok=True)
        save_file(mixed, made / "model.safetensors", {"format": "pt"})


def shares(names: Collection[str], given: Sequence[float]) -> dict[str, float]:
    """The share of each weight."""
    layer_of = {name: int(found[1]) for name in names if (found := LAYER.search(name))}
    outside, *parts = given if len(given) > 1 else [given[0]] * 2
    num_layers = max(layer_of.values(), default=-1) + 1
    return {name: parts[layer_of[name] * len(parts) // num_layers] if name in layer_of else outside for name in names}


def pack(model: Path, out: Path, parts: int) -> None:
    """Weights in half precision, spread over folders; everything else, a head's weights too, in the first."""
    weights = {name: tensor.half() for name, tensor in load_file(model / "model.safetensors").items()}
    sizes = np.cumsum([tensor.numel() for tensor in weights.values()])
    part_of = np.minimum((sizes - 1) * parts // sizes[-1], parts - 1)
    for part in range(parts):
        folder = out / f"part{part}"
        folder.mkdir(parents=True, exist_ok=True)
        some = {name: tensor for (name, tensor), at in zip(weights.items(), part_of, strict=True) if at == part}
        save_file(some, folder / "weights.safetensors")

    def weights_of(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder) == model and name == "model.safetensors"]

    shutil.copytree(model, out / "part0/rest", ignore=weights_of, dirs_exist_ok=True)


def unpack(parts: Path, out: Path) -> None:
    """The folder that `pack` took apart."""
    shutil.copytree(parts / "part0/rest", out, dirs_exist_ok=True)
    weights: dict[str, torch.Tensor] = {}
    for path in sorted(parts.glob("part*/weights.safetensors")):
        weights |= {name: tensor.float() for name, tensor in load_file(path).items()}
    save_file(weights, out / "model.safetensors", {"format": "pt"})
