"""Read the files of a model folder with suspicion: they may be missing, half-copied, damaged or hostile."""

import json
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from munjang.checkpoint.bundled import BUNDLED, folder_of
from munjang.checkpoint.compact import CPU_DTYPE, FILE_STEM, PART_SUFFIXES, WORDS_OF, restore
from munjang.errors import CheckpointError
from munjang.text.bounds import read_file

Json = dict[str, Any]
MAX_SHARED = 4  # times that tensors of one pytorch_model.bin, on average, may show the same bytes
MAX_SIZE = 10**8  # no size of any model is larger; two of them multiplied still fit into 64 bits
RANGES_FILE = "munjang_ranges.safetensors"  # beside a model, for int8 vectors; sentence-transformers passes over it
ONNX_FILES = ("munjang_onnx.json", "model.onnx", "model.onnx.data")  # our export: facts, graph, weights of a large one
# All files that a model may have in a folder, as patterns: texts, then weights in the order of preference
ADAPTER_FILES = ("adapter_model.safetensors", "adapter_model.bin")
TEXT_FILES = (
    "adapter_config.json",
    ONNX_FILES[0],
    *("modules.json", "config.json", "config_sentence_transformers.json", "sentence_*_config.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model"),
)
# One file, or an index and its parts
WEIGHT_FILES = (
    ("model.safetensors", "model.safetensors.index.json", "model-*.safetensors"),
    ("pytorch_model.bin", "pytorch_model.bin.index.json", "pytorch_model-*.bin"),
    (f"{FILE_STEM}.safetensors", f"{FILE_STEM}.safetensors.index.json", f"{FILE_STEM}-*.safetensors"),
)
# Weights that we do not read, and what to do about them
UNREAD_WEIGHTS = {
    "adapter_model.*": "holds a PEFT adapter only; get its adapter_config.json too, which names its base model",
    "tf_model.h5": "has TensorFlow weights only; convert them with transformers (from_tf=True, save_pretrained)",
    "flax_model.msgpack": "has Flax weights only; convert them with transformers (from_flax=True, save_pretrained)",
    "*.gguf": "has GGUF weights only; get the model as safetensors",
    "*.onnx": "has an ONNX export only; get the model as safetensors",
}


def load_json(path: Path) -> Any:
    """Read any JSON value."""
    try:
        return json.loads(read_file(path))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing; the folder is half copied, or not a model folder.") from error
    except (ValueError, RecursionError, OSError) as error:
        raise CheckpointError(f"{path} can't be read as JSON ({error}); copy the file again.") from error


def read_json(path: Path) -> Json:
    """Read a JSON object."""
    value = load_json(path)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} should hold a JSON object, not a {type(value).__name__}.")
    return value


def read_json_if(path: Path) -> Json:
    """Read a JSON object; an empty one if there is no such file."""
    return read_json(path) if path.is_file() else {}


def whole(value: object, what: str, least: int = 1) -> int:
    """Return a whole number that a file states; refuse anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value % 1 or not least <= value <= MAX_SIZE:  # type: ignore[operator]
        raise CheckpointError(f"{what} should be a whole number from {least} to {MAX_SIZE}, not {value!r:.60}.")
    return int(value)  # type: ignore[call-overload]


def inside(folder: Path, relative: object) -> Path:
    """Return a path that a file of the folder names; refuse one that leaves the folder.

    Links are followed: the Hub's cache is made of them, and a downloaded checkpoint can't bring any.
    """
    path = PurePosixPath(str(relative).replace("\\", "/"))
    if not isinstance(relative, str) or path.is_absolute() or ".." in path.parts or {":", "\0"} & set(relative):
        raise CheckpointError(f"{folder} names the path {relative!r}, which leaves the model folder; that is refused.")
    return folder / path


class Weights(Mapping[str, Tensor]):
    """Tensors of a folder by name, read one at a time from safetensors, or all at once from pytorch_model.bin.

    Those that our compact format holds in 8 bits are returned in float32.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path_of: dict[str, Path] = {}
        self.loaded: dict[str, Tensor] = {}
        self.is_compact = is_compact(folder)
        if self.is_compact:
            self.path_of |= shared_words(folder)
        for path in weight_files(folder):
            if path.suffix == ".safetensors":
                self.path_of |= dict.fromkeys(_safetensors_names(path), path)
            else:
                self.loaded |= read_tensors(path)

    def __getitem__(self, name: str) -> Tensor:
        if name in self.loaded:
            return self.loaded[name]
        tensor = self._read(name)
        if not self.is_compact or tensor.dtype != torch.int8:
            return tensor
        scale, equal = (self._read(name + part) if name + part in self.path_of else None for part in PART_SUFFIXES)
        return restore(f"{self.folder}: the tensor {name}", tensor, scale, equal)

    def _read(self, name: str) -> Tensor:
        path = self.path_of[name]
        try:
            with safe_open(path, framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
        except Exception as error:  # safetensors and torch raise many kinds: no such dtype here, cut off, ...
            raise CheckpointError(f"{path}: the tensor {name} can't be read ({error}); copy the file again.") from error
        return tensor

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in self.path_of if not (self.is_compact and name.endswith(PART_SUFFIXES)))
        yield from self.loaded

    def __len__(self) -> int:
        return sum(1 for _ in self)


def shared_words(folder: Path) -> dict[str, Path]:
    """Return where the table of words of a compact folder is, by tensor, if it leaves it to a model of the package."""
    name = read_json_if(folder / "config.json").get(WORDS_OF)
    if name is None:
        return {}
    if not isinstance(name, str) or name not in BUNDLED:
        allowed = ", ".join(BUNDLED)
        raise CheckpointError(f"{folder / 'config.json'}: {WORDS_OF} should be one of {allowed}, not {name!r:.60}.")
    return {tensor: path for path in weight_files(folder_of(name)) for tensor in words_in(path)}


def words_in(path: Path) -> list[str]:
    """Return the names of the tensors of a file that make up the table of words."""
    return [name for name in _safetensors_names(path) if "word_embeddings" in name]


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read all tensors of one file: safetensors, or a pickle of plain tensors."""
    if path.suffix != ".safetensors":
        return _read_bin(path)
    names = _safetensors_names(path)
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in names}


def has_weights(folder: Path) -> bool:
    """Tell whether the folder has weights that we read."""
    return any((folder / name).is_file() for names in WEIGHT_FILES for name in names[:2])


def is_compact(folder: Path) -> bool:
    """Tell whether the weights that we read there are in our compact format."""
    return has_weights(folder) and weight_files(folder)[0].name.startswith(FILE_STEM)


def stated_dtype(folder: Path) -> str | None:
    """Return the dtype in which a compact folder asks to be computed on a CPU, or None."""
    if not is_compact(folder):
        return None
    stated = read_json_if(folder / "config.json").get(CPU_DTYPE)
    if stated not in (None, "float32", "int8"):
        raise CheckpointError(f"{folder / 'config.json'}: {CPU_DTYPE} should be float32 or int8, not {stated!r:.60}.")
    return stated


def weight_files(folder: Path) -> list[Path]:
    """Return the weight files of a folder, or the parts of a split one."""
    for name, index, _ in WEIGHT_FILES:
        if (folder / name).is_file():
            return [folder / name]
        if (folder / index).is_file():
            return _parts(folder, index)
    for pattern, advice in UNREAD_WEIGHTS.items():
        if list(folder.glob(pattern)):
            raise CheckpointError(f"{folder} {advice}.")
    raise CheckpointError(f"{folder} has no weights: model.safetensors or pytorch_model.bin is needed.")


def _parts(folder: Path, index: str) -> list[Path]:
    file_of = read_json(folder / index).get("weight_map")
    if not isinstance(file_of, dict) or not file_of:
        raise CheckpointError(f"{folder / index} should say in weight_map which file holds each tensor.")
    if not all(isinstance(part, str) for part in file_of.values()):
        raise CheckpointError(f"{folder / index}: weight_map should give the name of a file for each tensor.")
    paths = [inside(folder, part) for part in dict.fromkeys(file_of.values())]
    for path in paths:
        if not path.is_file() or path.suffix != Path(index.removesuffix(".index.json")).suffix:
            raise CheckpointError(f"{path} is missing, but {index} lists it; copy the folder again.")
    return paths


def _safetensors_names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="pt") as file:
            return list(file.keys())
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged or cut off ({error}); copy the file again.") from error


def check_files(folder: Path) -> None:
    """Refuse a folder with something that is neither a file nor a folder: a reader of a pipe would wait for ever."""
    for path in [*folder.glob("*"), *folder.glob("*/*")]:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise CheckpointError(f"{path} is not a regular file; a model folder has only files and folders.")


def _read_bin(path: Path) -> dict[str, Tensor]:
    _check_packed(path)
    try:
        value = torch.load(path, map_location="cpu", weights_only=True, mmap=False)
    except Exception as error:  # torch raises many kinds; all mean that the file is not plain tensors
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(
            f"{path} is damaged, or holds more than plain tensors, which could run code and is refused ({reason}). "
            "Copy the file again, or get the model as model.safetensors."
        ) from error
    tensors = value.get("state_dict", value) if isinstance(value, dict) else {}
    if not isinstance(tensors, dict) or not tensors:
        raise CheckpointError(f"{path} should hold tensors by name; it holds something else.")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise CheckpointError(f"{path} should hold tensors by name; {name!r} is a {type(tensor).__name__}.")
    num_bytes, size = sum(tensor.nbytes for tensor in tensors.values()), path.stat().st_size
    if num_bytes > MAX_SHARED * size:
        raise CheckpointError(f"{path} has {size:,} bytes, but its tensors take {num_bytes:,}; that is refused.")
    return dict(tensors)


def _check_packed(path: Path) -> None:
    """Refuse an archive with compressed members, which torch never writes: a small one may unpack to any size."""
    if not zipfile.is_zipfile(path):
        return  # of torch before 1.6, or damaged: torch will say
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); copy the file again.") from error
    packed = next((each for each in members if each.compress_type != zipfile.ZIP_STORED), None)
    if packed is not None:
        raise CheckpointError(
            f"{path} is compressed ({packed.filename} is {packed.file_size:,} bytes out of {packed.compress_size:,}), "
            "which torch never writes; that is refused. Get the model as model.safetensors."
        )
