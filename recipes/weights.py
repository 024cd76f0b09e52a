"""Folders of weights: in between of others, and in parts that fit the limits of a transfer."""

import re
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from safetensors.torch import load, load_file, save, save_file

from munjang.checkpoint.folders import replacing_folder
from munjang.errors import InputError

Weights: TypeAlias = dict[str, torch.Tensor]
Share: TypeAlias = float | Sequence[float]
Way: TypeAlias = tuple[Path, Sequence[float]]  # a trained model, and the shares of it

LAYER = re.compile(r"\blayer\.(\d+)\.")
SCALE = "|scale"
PART_BYTES = 15_000_000


def blend(start: Path, *folders: Path, share: Share) -> None:
    """Weights on the way from the start to the mean of trained ones: what the start could do besides comes back.

    As WiSE-FT and model soups do (Wortsman et al. 2022). Figures: docs/log.md. `share` is one number, or several: that
    of the words (and all that is outside the layers), then those of equal parts of the layers from the first one up.
    """
    *trained, out = folders
    given = [share] if isinstance(share, int | float) else share
    mixed(start, [(folder, [each / len(trained) for each in given]) for folder in trained], out)


def mixed(start: Path, ways: Sequence[Way], out: Path) -> None:
    """Weights that go from the start towards others, as far as the shares of each say; other files are the first's."""
    first, others = _read(start), [_read(folder) for folder, _ in ways]
    found = {name: first[name].float() for name in (others or [first])[0]}  # a start may have a head besides
    for other, (_, given) in zip(others, ways, strict=True):
        share_of = shares(found, given)
        for name, value in found.items():
            found[name] = value + share_of[name] * (other[name].float() - first[name].float())
    with replacing_folder(out) as made:  # never the trained weights alone, which a stopped copy would leave
        shutil.copytree(ways[0][0] if ways else start, made, dirs_exist_ok=True)
        save_file(found, made / "model.safetensors", {"format": "pt"})


def _read(folder: Path) -> Weights:
    if not (folder / "model.safetensors").exists():
        raise InputError(f"{folder} holds no model.safetensors; `munjang export` writes one.")
    return load_file(folder / "model.safetensors")


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


def difference(start: Path, model: Path, out: Path) -> None:
    """What training has changed, as files that fit the limits of a transfer: a quarter of the model's size.

    The largest change of a row is 127 steps, so nothing is off by more than 0.4 % of it.
    """
    before, after, found = _read(start), _read(model), {}
    for name, tensor in after.items():
        change = tensor.float() - before[name].float()
        if change.ndim == 2:
            scale = change.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
            found[name], found[name + SCALE] = (change / scale).round().to(torch.int8), scale[:, 0].contiguous()
        else:
            found[name] = change
    data = save(found)
    out.mkdir(parents=True, exist_ok=True)
    for place, at in enumerate(range(0, len(data), PART_BYTES)):
        (out / f"{model.name}.{place:02}").write_bytes(data[at : at + PART_BYTES])


def added(start: Path, parts: Path, name: str, out: Path) -> None:
    """The model whose difference to the start `difference` wrote."""
    files = sorted(parts.glob(f"{name}.[0-9][0-9]"))
    if not files:
        raise InputError(f"{parts} holds no part of {name}.")
    change, found = load(b"".join(path.read_bytes() for path in files)), _read(start)
    for key, tensor in found.items():
        by = change[key].float() * change[key + SCALE][:, None] if key + SCALE in change else change[key]
        found[key] = tensor.float() + by
    with replacing_folder(out) as made:
        shutil.copytree(start, made, dirs_exist_ok=True)
        save_file(found, made / "model.safetensors", {"format": "pt"})
