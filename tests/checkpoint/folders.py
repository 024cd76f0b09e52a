"""Model folders taken apart and put together again in other layouts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from tests.texts import mixed

TEXTS = [*mixed(12, longest=40), "", " ", "one", "하나", "Ärger ÉCOLE CAFÉ 가나다"]
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def edit(path: Path, **changes: object) -> None:
    """Change keys of a JSON object; ... removes a key."""
    value = {**(read(path) if path.is_file() else {}), **changes}
    write(path, {key: item for key, item in value.items() if item is not ...})


def copy(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    """Change the tensors of a folder, in place or by returning others."""
    tensors = load_file(folder / "model.safetensors")
    save_file(change(tensors) or tensors, folder / "model.safetensors", metadata={"format": "pt"})


def as_bin(folder: Path) -> None:
    """model.safetensors to pytorch_model.bin, as before 2023."""
    for path in folder.rglob("model.safetensors"):
        torch.save(load_file(path), path.with_name("pytorch_model.bin"))
        path.unlink()


def split(folder: Path, name: str) -> None:
    """model.safetensors to two parts and their list, under either format's names."""
    tensors = load_file(folder / "model.safetensors")
    stem, _, suffix = name.rpartition(".")
    parts: list[dict[str, torch.Tensor]] = [{}, {}]
    for place, key in enumerate(sorted(tensors)):
        parts[place % 2][key] = tensors[key]
    places = {}
    for number, part in enumerate(parts, 1):
        file = f"{stem}-{number:05d}-of-00002.{suffix}"
        if suffix == "safetensors":
            save_file(part, folder / file, metadata={"format": "pt"})
        else:
            torch.save(part, folder / file)
        places |= dict.fromkeys(part, file)
    (folder / "model.safetensors").unlink()
    write(folder / f"{name}.index.json", {"metadata": {"total_size": 1}, "weight_map": places})


def old_layout(folder: Path, inner: str = "", booleans: tuple[str, ...] = ("mean",), version: int = 2) -> None:
    """A folder of 6.x as sentence-transformers 1.x or 2.x wrote it: other names of classes, keys and files."""
    entries = read(folder / "modules.json")
    for entry in entries:
        entry["type"] = "sentence_transformers.models." + entry["type"].rpartition(".")[2]
        if entry["path"].endswith("_Normalize"):
            shutil.rmtree(folder / entry["path"])  # nothing was ever in it, and Git keeps no empty folders
    if inner:
        entries[0]["path"] = inner
        (folder / inner).mkdir()
        for path in list(folder.iterdir()):
            if path.is_file() and path.name not in ("modules.json", "config_sentence_transformers.json"):
                path.rename(folder / inner / path.name)
    write(folder / "modules.json", entries)
    keys = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens"]
    if version > 1:
        keys += ["weightedmean_tokens", "lasttoken"]
    on = {
        "cls": "cls_token",
        "mean": "mean_tokens",
        "max": "max_tokens",
        "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    }
    on |= {"weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}
    chosen = {on[mode] for mode in booleans}
    pooling = {f"pooling_mode_{key}": key in chosen for key in keys}
    write(folder / "1_Pooling/config.json", {"word_embedding_dimension": 32, **pooling})
    write(folder / inner / "sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": False})
    if version == 1:
        (folder / "config_sentence_transformers.json").unlink()
    else:
        versions = {"sentence_transformers": "2.0.0", "transformers": "4.6.1", "pytorch": "1.8.1"}
        write(folder / "config_sentence_transformers.json", {"__version__": versions})


def difference(ours: Any, theirs: Any) -> float:
    """Largest difference, as a share of the largest value."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-9))
