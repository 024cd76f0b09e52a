"""Arguments of the constructors: those we support, and an error for each value that we would have to ignore."""

import os
from pathlib import Path
from typing import Any

import torch

from munjang.checkpoint import Hub, resolve
from munjang.checkpoint.files import read_json_if
from munjang.compat.gaps import EXPORT, MODULES
from munjang.engine.devices import DTYPES, pick_device
from munjang.errors import CheckpointError, InputError, unknown

# Argument: its only allowed value, and the alternative to any other
FIXED_ARGUMENTS: dict[str, tuple[object, str]] = {
    "backend": ("torch", EXPORT),
    "config_kwargs": (
        None,
        "The configuration comes from the checkpoint; edit config.json in a copy of the folder and load that.",
    ),
    "keep_in_fp32_modules": (None, "The head always computes in float32."),
}
MODEL_KWARGS = {
    "device_map": "Give device= instead.",
    "file_name": EXPORT,
    "provider": EXPORT,
    "export": EXPORT,
}
# Arguments without an effect on the results: attention is chosen by device, nothing is padded, the tokenizer is always
# the fast one, weights are read from safetensors first, and code that comes with a checkpoint is never run
HARMLESS_MODEL_KWARGS = {
    "attn_implementation",
    "low_cpu_mem_usage",
    "use_safetensors",
    "trust_remote_code",
    "add_pooling_layer",
    "cache_dir",
    "revision",
    "token",
    "local_files_only",
    "reference_compile",
    "use_cache",
}
HARMLESS_PROCESSOR_KWARGS = {
    "padding_side",
    "use_fast",
    "trust_remote_code",
    "cache_dir",
    "revision",
    "token",
    "local_files_only",
    "clean_up_tokenization_spaces",
}
HARMLESS_CONFIG_KWARGS = {
    "attn_implementation",
    "trust_remote_code",
    "use_cache",
    "cache_dir",
    "revision",
    "token",
    "local_files_only",
    "reference_compile",
}
# What a Transformer of theirs may be for: the kind of model of ours
TASKS = {"feature-extraction": "bi", "sequence-classification": "cross", "text-classification": "cross"}
# Bare names of transformers' own models from before the Hub; any other bare name belongs to the organization
ORIGINAL_NAMES = """
    albert-base-v1 albert-base-v2 albert-large-v1 albert-large-v2 albert-xlarge-v1 albert-xlarge-v2
    albert-xxlarge-v1 albert-xxlarge-v2 bert-base-cased bert-base-chinese bert-base-german-cased
    bert-base-german-dbmdz-cased bert-base-german-dbmdz-uncased bert-base-multilingual-cased
    bert-base-multilingual-uncased bert-base-uncased bert-large-cased bert-large-cased-whole-word-masking
    bert-large-uncased bert-large-uncased-whole-word-masking camembert-base distilbert-base-cased
    distilbert-base-german-cased distilbert-base-multilingual-cased distilbert-base-uncased
    distilbert-base-uncased-finetuned-sst-2-english distilroberta-base roberta-base roberta-large
    roberta-large-mnli xlm-roberta-base xlm-roberta-large
"""
ORIGINAL_TRANSFORMER_MODELS = ORIGINAL_NAMES.split()


def check_fixed(**given: object) -> None:
    """Raise InputError for values that would be ignored."""
    for name, value in given.items():
        only, way = FIXED_ARGUMENTS[name]
        if name == "config_kwargs" and isinstance(value, dict):
            value = {key: asked for key, asked in value.items() if key not in HARMLESS_CONFIG_KWARGS}
        if value != only and not (only is None and not value):  # an empty dict or list is none
            raise InputError(f"{name}={value!r:.60} is not covered by munjang.compat. {way}")


def find_folder(
    name: str | os.PathLike[str] | None,
    organization: str | None,
    cache_folder: str | None,
    revision: str | None,
    token: bool | str | None,
    local_files_only: bool,
) -> Path:
    """Return the folder of a path or Hub name, downloading it if needed."""
    if name is None:
        raise CheckpointError(f"Give the folder or Hub name of a model. {MODULES}")
    is_original = isinstance(name, str) and name.lower() in ORIGINAL_TRANSFORMER_MODELS
    cache = cache_folder or os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    return resolve(name, Hub(None if is_original else organization, revision, cache, token, local_files_only))


def asked_dtype(model_kwargs: dict[str, Any] | None, folder: Path) -> str:
    """Return the requested dtype; by default the checkpoint's own, so that vectors don't change."""
    given = dict(model_kwargs or {})
    older = given.pop("torch_dtype", None)
    dtype = given.pop("dtype", older)
    for name in given.keys() - HARMLESS_MODEL_KWARGS:
        way = MODEL_KWARGS.get(name, "Only dtype is.")
        raise InputError(f"model_kwargs[{name!r}] is not covered by munjang.compat. {way}")
    if dtype is None or dtype == "auto":
        stored = [*sorted(folder.glob("0_*/config.json")), folder / "config.json"]
        config = read_json_if(stored[0])
        own = str(config.get("dtype") or config.get("torch_dtype") or "float32").removeprefix("torch.")
        return own if own in DTYPES else "float32"
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise unknown("dtype", name, DTYPES)
    return name


def asked_length(processor_kwargs: dict[str, Any] | None, max_length: int | None = None) -> int | None:
    """Return the requested maximum length in tokens, if any."""
    for name, value in (processor_kwargs or {}).items():
        if name in HARMLESS_PROCESSOR_KWARGS:
            continue
        if name != "model_max_length":
            raise InputError(f"processor_kwargs[{name!r}] is not covered by munjang.compat. Only model_max_length is.")
        max_length = int(value) if max_length is None else max_length
    return max_length


def full_device(device: str | int | torch.device | None) -> torch.device:
    """Return a device with its index: `cuda` is the current GPU, `cpu` has no index."""
    picked = pick_device(torch.device(device) if isinstance(device, int) else device)
    if picked.type == "cpu":
        return torch.device("cpu")
    index = torch.cuda.current_device() if picked.type == "cuda" else 0
    return torch.device(picked.type, index if picked.index is None else picked.index)
