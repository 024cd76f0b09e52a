"""Folders of weights: in between of others, and in parts that fit the limits of a transfer."""

import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from munjang.checkpoint.folders import replacing_folder


def blend(start: Path, *folders: Path, share: float) -> None:
    """Weights on the way from the start to the mean of trained ones: what the start could do besides comes back.

    As WiSE-FT and model soups do (Wortsman et al. 2022). Figures: docs/log.md.
    """
    *trained, out = folders
    first, *others = (load_file(folder / "model.safetensors") for folder in (start, *trained))
    mixed = {
        name: first[name].float().lerp(torch.stack([other[name].float() for other in others]).mean(0), share)
        for name in others[0]
    }
    with replacing_folder(out) as made:  # never the trained weights alone, which a stopped copy would leave
        shutil.copytree(trained[0], made, dirs_exist_ok=True)
        save_file(mixed, made / "model.safetensors", {"format": "pt"})


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
