"""Write a model to a folder that sentence-transformers loads too, with the oldest names and keys that express it.

With format="munjang-int8" the encoder's weights in that folder are in 8 bits (checkpoint/compact.py).
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from safetensors.numpy import save_file
from tokenizers import Tokenizer as RustTokenizer
from torch import Tensor, nn

from munjang.checkpoint.atomic import write_folder
from munjang.checkpoint.compact import CPU_DTYPE, FILE_STEM, FORMAT, WORDS_OF, squeeze
from munjang.checkpoint.encoders import family_of, unfill
from munjang.checkpoint.files import RANGES_FILE, Json, read_json
from munjang.checkpoint.model import Model
from munjang.checkpoint.modules import (
    Pooling,
    write_dense,
    write_json,
    write_logit_score,
    write_module,
    write_pooling,
    write_tensors,
)
from munjang.errors import UnsupportedModel, unknown
from munjang.nn.encoder import Encoder
from munjang.nn.fallback import CausalScorer, TransformersClassifier, TransformersModel
from munjang.nn.families.base import head_names
from munjang.nn.heads import ClassificationHead, Dense, activation, path_of
from munjang.nn.network import ModularHead, SentenceNetwork

FORMATS = ("sentence-transformers", FORMAT)
OLD_PACKAGE = "sentence_transformers.models"  # known to every version from 1.x to 6.x
SPARSE_PACKAGE = "sentence_transformers.sparse_encoder.models"
LATE_PACKAGE = "sentence_transformers.multi_vector_encoder.modules"
NEW_PACKAGES = {
    "LogitScore": "sentence_transformers.cross_encoder.modules.logit_score",
    **dict.fromkeys(("MLMTransformer", "SpladePooling", "SparseAutoEncoder", "SparseStaticEmbedding"), SPARSE_PACKAGE),
    **dict.fromkeys(("MultiVectorMask", "HierarchicalTokenPooling"), LATE_PACKAGE),
}
TOKENIZER_FILES = ("vocab.txt", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json", "*.model")
# Keys of config.json that are of the weights and the code that a model came with
NOT_WRITTEN = ("torch_dtype", "auto_map", "quantization_config", WORDS_OF)
SPECIAL_DEFAULTS = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
Rows = list[tuple[str, str]]  # the modules of a folder: class, subfolder


def write_bi(model: Model, target: Path, format: str | None = None) -> None:
    """Write a bi-encoder as sentence-transformers 2.x stored it."""
    model = check_format(model, format)
    network = cast(SentenceNetwork, model.network)

    def write(folder: Path) -> None:
        if network.encoder.is_static:
            rows = [("StaticEmbedding", "")]
            _write_static(model, network, folder)
        else:
            rows = [("Transformer", ""), ("Pooling", "1_Pooling")]
            write_encoder(model, folder, "Model", {})
            write_pooling(folder / "1_Pooling", Pooling(network.modes, network.includes_prompt), network.encoder.width)
        for module in network.tail:
            rows.append((type(module).__name__, f"{len(rows)}_{type(module).__name__}"))
            write_module(folder / rows[-1][1], module)
        if model.ranges is not None:
            save_file({"ranges": model.ranges}, folder / RANGES_FILE)
        newer = {} if model.truncate_dim is None else {"truncate_dim": model.truncate_dim}
        write_rows(model, folder, rows, "2.2.2", {"similarity_fn_name": model.similarity, **newer})

    write_folder(target, write)


def write_cross(model: Model, target: Path, function: Callable[[Tensor], Tensor], format: str | None = None) -> None:
    """Write a cross-encoder as ...ForSequenceClassification, or as modules where that can't express it."""
    model = check_format(model, format)
    path = path_of(function)
    activation(path)  # one that could not be loaded again is refused here
    scorer: Any = getattr(model.network, "head", model.network)

    def write(folder: Path) -> None:
        rows = SCORER_WRITERS[type(scorer)](model, scorer, folder, path)
        if rows:
            write_rows(model, folder, rows, "5.4.0", {"model_type": "CrossEncoder", "activation_fn": path})

    write_folder(target, write)


def check_format(model: Model, format: str | None) -> Model:
    """Return the model as it is to be written, or refuse one that can't be."""
    if format is not None and format not in FORMATS:
        raise unknown("format", format, FORMATS)
    encoder = model.network.encoder
    if format == FORMAT and encoder.own is None:
        raise UnsupportedModel(
            f"format={FORMAT!r} is for encoders that Munjang computes itself, not {type(encoder).__name__}; "
            "leave it out."
        )
    if encoder.is_exported:
        raise UnsupportedModel(f"{model.folder} is an ONNX export, which holds no weights to save: copy the folder.")
    return replace(model, is_compact=format == FORMAT)


def write_rows(model: Model, folder: Path, rows: Rows, version: str, settings: Json) -> None:
    """Write modules.json and config_sentence_transformers.json."""
    entries = [
        {"idx": number, "name": str(number), "path": path, "type": f"{NEW_PACKAGES.get(name, OLD_PACKAGE)}.{name}"}
        for number, (name, path) in enumerate(rows)
    ]
    write_json(folder / "modules.json", entries)
    shared = {"prompts": model.prompts, "default_prompt_name": model.default_prompt_name}
    all_settings = {"__version__": {"sentence_transformers": version}, **shared, **settings}
    write_json(folder / "config_sentence_transformers.json", all_settings)


def _write_classifier(model: Model, scorer: Any, folder: Path, activation_path: str) -> Rows:
    """Write ...ForSequenceClassification; its modules are listed only where they say what config.json can't."""
    keys = {
        "sbert_ce_default_activation_function": activation_path,
        "sentence_transformers": {"activation_fn": activation_path, "version": "4.0.0"},
    }
    has_rows = bool(model.prompts) or model.is_lowered
    task = "sequence-classification" if has_rows else None
    head = None if scorer is model.network else scorer  # a model of transformers keeps its own
    write_encoder(model, folder, "ForSequenceClassification", keys, head, task)
    return [("Transformer", "")] if has_rows else []


def _write_modular(model: Model, head: ModularHead, folder: Path, activation_path: str) -> Rows:
    """Write an encoder, a pooling and dense layers, the last of which gives the scores."""
    write_encoder(model, folder, "Model", {})
    write_pooling(folder / "1_Pooling", Pooling(head.modes), model.network.encoder.width)
    rows = [("Transformer", ""), ("Pooling", "1_Pooling")]
    for layer in head.layers:
        rows.append((type(layer).__name__, f"{len(rows)}_{type(layer).__name__}"))
        if layer is head.layers[-1]:
            names = {"module_input_name": "sentence_embedding", "module_output_name": "scores"}
            write_dense(folder / rows[-1][1], cast(Dense, layer), names)
        else:
            write_module(folder / rows[-1][1], layer)
    return rows


def _write_causal(model: Model, scorer: CausalScorer, folder: Path, activation_path: str) -> Rows:
    """Write a decoder and the ids of its answer words."""
    write_encoder(model, folder, "ForCausalLM", {}, task="text-generation")
    write_logit_score(folder / "1_LogitScore", scorer.yes, scorer.no)
    return [("Transformer", ""), ("LogitScore", "1_LogitScore")]


# By the type of what makes the scores: the head behind our encoder, or a whole model of transformers
SCORER_WRITERS: dict[type[nn.Module], Callable[[Model, Any, Path, str], Rows]] = {
    ClassificationHead: _write_classifier,
    TransformersClassifier: _write_classifier,
    ModularHead: _write_modular,
    CausalScorer: _write_causal,
}


def _write_static(model: Model, network: SentenceNetwork, folder: Path) -> None:
    """Write StaticEmbedding: the mean over all tokens, cut where tokenizer.json says so."""
    if network.modes != ("mean",):
        raise UnsupportedModel(f"Static embeddings are saved with mean pooling only, not {network.modes}.")
    assert network.encoder.table is not None
    write_tensors(folder / "model.safetensors", {"embedding.weight": network.encoder.table.weight})
    write_static_texts(model, folder)


def write_static_texts(model: Model, folder: Path) -> None:
    """Write the tokenizer of static embeddings, all that stands beside their weights."""
    rust = RustTokenizer.from_str(model.tokenizer.rust.to_str())
    if model.tokenizer.max_length is not None:
        rust.enable_truncation(model.tokenizer.max_length)
    rust.save(str(folder / "tokenizer.json"))
    if model.tokenizer.dropped is not None:  # sentence-transformers counts unknown tokens; here they stay left out
        write_json(folder / "config.json", {"munjang": {"leaves_out_unknown": True}})


def write_encoder(
    model: Model,
    folder: Path,
    kind: str,
    keys: Json,
    head: ClassificationHead | None = None,
    task: str | None = None,
    extra: Mapping[str, Tensor] | None = None,
) -> None:
    """Write config.json, weights and tokenizer of the transformer itself."""
    encoder = model.network.encoder
    if encoder.own is not None:
        config = {**_write_packed(model, encoder.own, head, folder, kind, extra), **keys}
    else:
        wrapped: Any = cast(TransformersModel, encoder).model
        state = {name: _float(tensor) for name, tensor in wrapped.state_dict().items()}
        wrapped.save_pretrained(folder, state_dict=state)
        config = {**read_json(folder / "config.json"), **keys}
    write_texts(model, folder, config, task)


def _write_packed(
    model: Model,
    encoder: Encoder,
    head: ClassificationHead | None,
    folder: Path,
    kind: str,
    extra: Mapping[str, Tensor] | None = None,
) -> Json:
    """Write the weights under transformers' names, `extra` with them; return config.json."""
    family = family_of(model.config)
    assert family is not None
    names = family.names(encoder.shape)
    own = unfill(encoder, names)
    own = squeeze(encoder, names, own) if model.is_compact else own
    prefix = "" if head is None and extra is None else family.prefix
    tensors = {prefix + name: value for name, value in own.items()}
    if head is not None:
        tensors |= unfill(head, head_names(head.shape, family.head_names))
    tensors |= extra or {}
    write_tensors(folder / (f"{FILE_STEM}.safetensors" if model.is_compact else "model.safetensors"), tensors)
    config = {**model.config, "architectures": [family.title + kind], "vocab_size": encoder.vocab_size}
    if head is not None and len(config.get("id2label") or {}) != head.shape.num_labels:
        config["id2label"] = {str(label): f"LABEL_{label}" for label in range(head.shape.num_labels)}
        config["label2id"] = {name: int(label) for label, name in config["id2label"].items()}
    return config


def write_texts(model: Model, folder: Path, config: Json, task: str | None = None, dtype: str = "float32") -> None:
    """Write all that stands beside the weights of a transformer: config.json, tokenizer, limits."""
    config = dict(config)
    own = () if model.is_compact else (CPU_DTYPE,)
    for key in (*NOT_WRITTEN, *own):
        config.pop(key, None)
    write_json(folder / "config.json", {**config, "dtype": dtype})
    write_tokenizer(model, folder)
    settings = {"max_seq_length": model.tokenizer.max_length, "do_lower_case": model.is_lowered}
    newer = {} if task is None else {"transformer_task": task}
    write_json(folder / "sentence_bert_config.json", {**settings, **newer})


def _float(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


def write_tokenizer(model: Model, folder: Path) -> None:
    """Write the tokenizer's files."""
    for pattern in TOKENIZER_FILES:
        for path in model.folder.glob(pattern):
            shutil.copyfile(path, folder / path.name)
    model.tokenizer.save(folder, is_indented=not model.is_compact)
    settings = {key: value for key, value in model.tokenizer_config.items() if key != "auto_map"}
    if model.tokenizer.max_length is not None:
        settings["model_max_length"] = model.tokenizer.max_length
    if "tokenizer_class" not in settings:  # else transformers guesses by architecture: a Korean ALBERT speaks WordPiece
        vocab = model.tokenizer.rust.get_vocab()
        spelled = {key: token for key, token in SPECIAL_DEFAULTS.items() if token in vocab}
        inputs = ["input_ids", *(["token_type_ids"] if model.tokenizer.has_types else []), "attention_mask"]
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs, **spelled, **settings}
    write_json(folder / "tokenizer_config.json", settings)
