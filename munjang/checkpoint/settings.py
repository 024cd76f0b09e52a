"""Read the settings beside the weights: sentence_bert_config.json and config_sentence_transformers.json.

A setting that would change the results and that we do not compute is refused by name; none is passed over in silence.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from munjang.checkpoint.files import MAX_SIZE, Json, read_json, read_json_if, whole
from munjang.errors import CheckpointError, UnsupportedModel, unknown
from munjang.vectors.similarity import SIMILARITIES

ENCODER_CONFIGS = [
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
]
# Keys of sentence_bert_config.json that are read below, or have no effect on the results here
KNOWN_KEYS = {
    "max_seq_length",
    "do_lower_case",
    "transformer_task",
    "modality_config",
    "module_output_name",
    "unpad_inputs",
}
# Arguments that later versions keep for transformers (old name, new name) and those of them that change no result here
ARGUMENTS = {
    ("model_args", "model_kwargs"): {
        *("add_pooling_layer", "attn_implementation", "dtype", "low_cpu_mem_usage", "torch_dtype", "trust_remote_code"),
        "use_safetensors",
    },
    ("tokenizer_args", "processor_kwargs"): {"model_max_length", "padding_side", "trust_remote_code", "use_fast"},
    ("config_args", "config_kwargs"): {"trust_remote_code", "use_cache"},
}
LATE_KEYS = ("query_length", "document_length", "query_expansion")
LATE_KINDS = ("MultiVectorEncoder", "ColBERT")  # of sentence-transformers and of PyLate
OUTPUT_NAMES = ["last_hidden_state", "logits"]


@dataclass(frozen=True)
class EncoderSettings:
    """Checked contents of sentence_bert_config.json."""

    max_length: int | None = None
    is_lowered: bool = False
    has_messages: bool = False  # texts are written into a chat template first
    config: Json = field(default_factory=dict)  # replaces what config.json says
    late: Json = field(default_factory=dict)  # lengths and expansion of late interaction


def encoder_settings(folder: Path) -> EncoderSettings:
    """Read sentence_bert_config.json under any of the names it had."""
    path = next((folder / name for name in ENCODER_CONFIGS if (folder / name).is_file()), None)
    if path is None:
        return EncoderSettings()
    stated = read_json(path)
    limit, config = stated.get("max_seq_length"), dict[str, Any]()
    for names, harmless in ARGUMENTS.items():
        for name in names:
            arguments = stated.get(name) or {}
            if not isinstance(arguments, dict):
                raise CheckpointError(f"{path}: {name} should be a JSON object, not {arguments!r}.")
            changes = {key: value for key, value in arguments.items() if key not in harmless}
            if name.startswith("config"):
                config |= changes
            elif changes:
                raise UnsupportedModel(f"{path} sets {name} to {changes!r:.60}, which is not computed.")
            limit = arguments.get("model_max_length", limit)
    known = KNOWN_KEYS | {name for names in ARGUMENTS for name in names}
    for key, value in stated.items():
        if key not in {*known, *LATE_KEYS} and value not in (None, False, {}, []):
            raise UnsupportedModel(f"{path} sets {key} to {value!r:.60}, which is not computed.")
    has_messages = _check_modalities(path, stated)
    late = {key: stated[key] for key in LATE_KEYS if stated.get(key) is not None}
    return EncoderSettings(read_limit(limit, path), bool(stated.get("do_lower_case")), has_messages, config, late)


def _check_modalities(path: Path, stated: Json) -> bool:
    modalities = stated.get("modality_config") or {"text": {}}
    if not isinstance(modalities, dict):
        raise CheckpointError(f"{path}: modality_config should be a JSON object, not {modalities!r:.60}.")
    text = modalities.get("text")
    method = text.get("method", "forward") if isinstance(text, dict) else None
    output = text.get("method_output_name", "logits") if isinstance(text, dict) else None
    if "message" not in modalities and (method != "forward" or output not in OUTPUT_NAMES):
        raise UnsupportedModel(f"{path}: modality_config asks for {text!r:.90}, which is not computed.")
    return "message" in modalities


def read_limit(value: object, path: Path) -> int | None:
    """Return a largest number of tokens; None: none is stated, or one too large to be meant (transformers: 1e30)."""
    if value is None or (isinstance(value, int | float) and value > MAX_SIZE):
        return None
    return whole(value, f"{path}: the largest number of tokens")


@dataclass(frozen=True)
class ModelSettings:
    """Checked contents of config_sentence_transformers.json."""

    kind: str | None = None  # SentenceTransformer, CrossEncoder, SparseEncoder, ...
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    similarity: str | None = None
    truncate_dim: int | None = None
    activation: str | None = None
    max_active_dims: int | None = None
    stated: Json = field(default_factory=dict)  # the whole file


def model_settings(folder: Path) -> ModelSettings:
    """Read config_sentence_transformers.json; defaults for the folders that have none."""
    path = folder / "config_sentence_transformers.json"
    stated = read_json_if(path)
    prompts = stated.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(text, str | None) for text in prompts.values()):
        raise CheckpointError(f"{path}: prompts should give a text for each name, not {prompts!r:.60}.")
    default = _name(stated, "default_prompt_name", path)
    if default is not None and default not in prompts:
        raise CheckpointError(f"{path}: the default prompt {default!r} is not among {sorted(prompts)}.")
    similarity = _name(stated, "similarity_fn_name", path)
    kind = _name(stated, "model_type", path)
    is_late = kind in LATE_KINDS or "query_prefix" in stated
    if similarity is not None and similarity not in SIMILARITIES and not is_late:
        raise CheckpointError(f"{unknown('similarity', similarity, SIMILARITIES)} ({path})")
    dim, active = stated.get("truncate_dim"), stated.get("max_active_dims")
    return ModelSettings(
        kind,
        {name: text or "" for name, text in prompts.items()},
        default,
        similarity,
        None if dim is None else whole(dim, f"{path}: truncate_dim"),
        _name(stated, "activation_fn", path),
        None if active is None else whole(active, f"{path}: max_active_dims"),
        stated,
    )


def _name(stated: Json, key: str, path: Path) -> Any:
    value = stated.get(key)
    if not isinstance(value, str | None):
        raise CheckpointError(f"{path}: {key} should be a name, not {value!r:.60}.")
    return value
