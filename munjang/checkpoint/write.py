"""A model to a folder that sentence-transformers loads too: the oldest names and keys that express it.

Or, with format="munjang-int8", the same folder with the encoder's weights in 8 bits (checkpoint/compact.py).
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

from safetensors.numpy import save_file
from tokenizers import Tokenizer as RustTokenizer
from torch import Tensor, nn

from munjang.checkpoint.compact import CPU_DTYPE, FORMAT, STEM, squeeze
from munjang.checkpoint.encoders import family_of, unfill
from munjang.checkpoint.files import RANGES, Json, read_json
from munjang.checkpoint.model import Model
from munjang.checkpoint.modules import (
    Pooling,
    write_dense,
    write_json,
    write_logit_score,
    write_norm,
    write_pooling,
    write_tensors,
)
from munjang.checkpoint.place import write_folder
from munjang.errors import UnsupportedModel, unknown
from munjang.nn.encoder import TokenEncoder
from munjang.nn.fallback import CausalScorer, TransformersModel
from munjang.nn.families.base import head_names
from munjang.nn.heads import ClassificationHead, Dense, LayerNorm, Normalize, activation, path_of
from munjang.nn.network import ModularHead, PairNetwork, SentenceNetwork, StaticEncoder

FORMATS = ("sentence-transformers", FORMAT)
OLD = "sentence_transformers.models"  # known to every version from 1.x to 6.x
NEW = {"LogitScore": "sentence_transformers.cross_encoder.modules.logit_score"}
TOKENIZER_FILES = ("vocab.txt", "vocab.json", "merges.txt", "special_tokens_map.json", "added_tokens.json", "*.model")
SPECIAL_DEFAULTS = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
Rows = list[tuple[str, str]]  # the modules of a folder: class, subfolder


def write_bi(model: Model, target: Path, format: str | None = None) -> None:
    """A bi-encoder as sentence-transformers 2.x stored it."""
    model = _in_format(model, format)
    network = cast(SentenceNetwork, model.network)

    def write(folder: Path) -> None:
        if isinstance(network.encoder, StaticEncoder):
            rows = [("StaticEmbedding", "")]
            _write_static(model, network, network.encoder, folder)
        else:
            rows = [("Transformer", ""), ("Pooling", "1_Pooling")]
            _write_encoder(model, network.encoder, folder, "Model", {})
            width = network.encoder.width
            write_pooling(folder / "1_Pooling", Pooling(network.modes, network.includes_prompt), width)
        for module in network.tail:
            rows.append((type(module).__name__, f"{len(rows)}_{type(module).__name__}"))
            _write_module(module, folder / rows[-1][1])
        if model.ranges is not None:
            save_file({"ranges": model.ranges}, folder / RANGES)
        newer = {} if model.truncate_dim is None else {"truncate_dim": model.truncate_dim}
        _write_rows(model, folder, rows, "2.2.2", {"similarity_fn_name": model.similarity, **newer})

    write_folder(target, write)


def write_cross(model: Model, target: Path, function: Callable[[Tensor], Tensor], format: str | None = None) -> None:
    """A cross-encoder as ...ForSequenceClassification, or as modules where that can't express it."""
    model = _in_format(model, format)
    network = model.network
    path = path_of(function)
    activation(path)  # one that could not be loaded again is refused here
    keys = {
        "sbert_ce_default_activation_function": path,
        "sentence_transformers": {"activation_fn": path, "version": "4.0.0"},
    }

    def write(folder: Path) -> None:
        rows = [("Transformer", "")]
        if isinstance(network, CausalScorer):
            _write_encoder(model, network.encoder, folder, "ForCausalLM", {}, task="text-generation")
            rows.append(("LogitScore", "1_LogitScore"))
            write_logit_score(folder / rows[-1][1], network.yes, network.no)
        elif isinstance(network, PairNetwork) and isinstance(network.head, ModularHead):
            rows += _write_modular(model, network, network.head, folder)
        else:
            head = network.head if isinstance(network, PairNetwork) else None
            needs_rows = bool(model.prompts) or model.is_lowered  # which only modules can say
            task = "sequence-classification" if needs_rows else None
            assert not isinstance(head, ModularHead)
            _write_encoder(model, network.encoder, folder, "ForSequenceClassification", keys, head, task)
            if not needs_rows:
                return
        _write_rows(model, folder, rows, "5.4.0", {"model_type": "CrossEncoder", "activation_fn": path})

    write_folder(target, write)


def _in_format(model: Model, format: str | None) -> Model:
    """The model as it is to be written."""
    if format is not None and format not in FORMATS:
        raise unknown("format", format, FORMATS)
    encoder = model.network.encoder
    if format == FORMAT and encoder.own is None:
        raise UnsupportedModel(
            f"format={FORMAT!r} is for encoders that Munjang computes itself, not {type(encoder).__name__}; "
            "leave it out."
        )
    return replace(model, is_compact=format == FORMAT)


def _write_rows(model: Model, folder: Path, rows: Rows, version: str, settings: Json) -> None:
    """modules.json and config_sentence_transformers.json."""
    entries = [
        {"idx": place, "name": str(place), "path": path, "type": f"{NEW.get(name, OLD)}.{name}"}
        for place, (name, path) in enumerate(rows)
    ]
    write_json(folder / "modules.json", entries)
    shared = {"prompts": model.prompts, "default_prompt_name": model.default_prompt_name}
    all_settings = {"__version__": {"sentence_transformers": version}, **shared, **settings}
    write_json(folder / "config_sentence_transformers.json", all_settings)


def _write_modular(model: Model, network: PairNetwork, head: ModularHead, folder: Path) -> Rows:
    _write_encoder(model, network.encoder, folder, "Model", {})
    write_pooling(folder / "1_Pooling", Pooling(head.modes), network.encoder.width)
    rows = [("Pooling", "1_Pooling")]
    for layer in head.layers:
        name = type(layer).__name__
        rows.append((name, f"{len(rows) + 1}_{name}"))
        is_last = layer is head.layers[-1]
        names = {"module_input_name": "sentence_embedding", "module_output_name": "scores"} if is_last else None
        _write_module(layer, folder / rows[-1][1], names)
    return rows


def _write_module(module: nn.Module, folder: Path, names: dict[str, str] | None = None) -> None:
    folder.mkdir()
    if isinstance(module, Dense):
        write_dense(folder, module, names)
    elif isinstance(module, LayerNorm):
        write_norm(folder, module)
    elif isinstance(module, nn.Dropout):
        write_json(folder / "config.json", {"dropout": module.p})
    elif not isinstance(module, Normalize):
        raise UnsupportedModel(f"No folder layout is known for {type(module).__name__}.")


def _write_static(model: Model, network: SentenceNetwork, encoder: StaticEncoder, folder: Path) -> None:
    """StaticEmbedding: the mean over all tokens, cut where tokenizer.json says so."""
    if network.modes != ("mean",):
        raise UnsupportedModel(f"Static embeddings are saved with mean pooling only, not {network.modes}.")
    write_tensors(folder / "model.safetensors", {"embedding.weight": encoder.embedding.weight})
    write_static_texts(model, folder)


def write_static_texts(model: Model, folder: Path) -> None:
    """What stands beside the weights of static embeddings: the tokenizer."""
    rust = RustTokenizer.from_str(model.tokenizer.rust.to_str())
    if model.tokenizer.max_length is not None:
        rust.enable_truncation(model.tokenizer.max_length)
    rust.save(str(folder / "tokenizer.json"))
    if model.tokenizer.dropped is not None:  # sentence-transformers counts unknown pieces; here they stay left out
        write_json(folder / "config.json", {"munjang": {"leaves_out_unknown": True}})


def _write_encoder(
    model: Model,
    encoder: TokenEncoder,
    folder: Path,
    kind: str,
    keys: Json,
    head: ClassificationHead | None = None,
    task: str | None = None,
) -> None:
    """config.json, weights and tokenizer of the transformer itself."""
    if encoder.is_exported:
        raise UnsupportedModel(f"{model.folder} is an ONNX export, which holds no weights to save: copy the folder.")
    family = family_of(model.config)
    if isinstance(encoder, TransformersModel):
        state = {name: _float(tensor) for name, tensor in encoder.model.state_dict().items()}
        encoder.model.save_pretrained(folder, state_dict=state)  # type: ignore[operator]  # transformers' method
        config = {**read_json(folder / "config.json"), **keys}
    else:
        packed = encoder.own
        assert packed is not None
        assert family is not None
        prefix = "" if head is None else family.prefix
        names = family.names(packed.shape)
        own = unfill(packed, names)
        own = squeeze(packed, names, own) if model.is_compact else own
        tensors = {prefix + name: value for name, value in own.items()}
        if head is not None:
            tensors |= unfill(head, head_names(head.shape, family.head_names))
        write_tensors(folder / (f"{STEM}.safetensors" if model.is_compact else "model.safetensors"), tensors)
        facts = {"architectures": [family.title + kind], "vocab_size": packed.vocab_size}
        config = {**model.config, **facts, **keys}
        if head is not None and len(config.get("id2label") or {}) != head.shape.num_labels:
            config["id2label"] = {str(label): f"LABEL_{label}" for label in range(head.shape.num_labels)}
            config["label2id"] = {name: int(label) for label, name in config["id2label"].items()}
    write_texts(model, folder, config, task)


def write_texts(model: Model, folder: Path, config: Json, task: str | None = None, dtype: str = "float32") -> None:
    """What stands beside the weights of a transformer: config.json, tokenizer, limits."""
    config = dict(config)
    own = () if model.is_compact else (CPU_DTYPE,)
    for key in ("torch_dtype", "auto_map", "quantization_config", *own):  # of the weights and the code it came with
        config.pop(key, None)
    write_json(folder / "config.json", {**config, "dtype": dtype})
    _write_tokenizer(model, folder)
    settings = {"max_seq_length": model.tokenizer.max_length, "do_lower_case": model.is_lowered}
    newer = {} if task is None else {"transformer_task": task}
    write_json(folder / "sentence_bert_config.json", {**settings, **newer})


def _float(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


def _write_tokenizer(model: Model, folder: Path) -> None:
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
