"""Read every known layout; they are rows of two tables, one for bi-encoders, one for cross-encoders.

A row is a name, a test whether a folder has that layout, and a reader. The first row that fits is taken.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file
from torch import nn

from munjang.checkpoint.adapter import CONFIG_FILE, is_adapter, source_of
from munjang.checkpoint.encoders import load_classifier, load_encoder, load_fallback, pad_id, read_config
from munjang.checkpoint.files import (
    RANGES_FILE,
    Json,
    check_files,
    inside,
    is_compact,
    load_json,
    read_json,
    read_json_if,
)
from munjang.checkpoint.model import RERANK_WEIGHT, Model
from munjang.checkpoint.modules import MODULES, LogitScore, Pooling
from munjang.checkpoint.onnx import is_onnx, open_graph
from munjang.checkpoint.settings import EncoderSettings, encoder_settings, model_settings
from munjang.checkpoint.static import is_model2vec, load_static, load_static_tokenizer, read_model2vec
from munjang.checkpoint.tokenizer import check_vocabulary, load_tokenizer
from munjang.errors import CheckpointError, UnsupportedModel
from munjang.nn.base import Network
from munjang.nn.encoder import Encoder
from munjang.nn.fallback import CausalScorer
from munjang.nn.heads import Dense, LayerNorm, activation
from munjang.nn.network import ModularHead, PairNetwork, SentenceNetwork
from munjang.text.tokenizer import Template, Tokenizer
from munjang.types import Floats

INPUT_MODULES = ("Transformer", "StaticEmbedding")
# Modules of sentence-transformers that we don't have, and why
NOT_COMPUTED = {
    **dict.fromkeys(("CLIPModel", "CLIP"), "it reads images, and only texts are computed"),
    **dict.fromkeys(("LSTM", "CNN"), "recurrent and convolutional layers are not computed, only transformers"),
    **dict.fromkeys(("WordEmbeddings", "BoW", "WordWeights"), "word lists are not read, only subword tokenizers"),
    **dict.fromkeys(("Asym", "Router"), "queries and documents with weights of their own are not computed"),
    **dict.fromkeys(("MLMTransformer", "SpladePooling", "SparseStaticEmbedding"), "SparseEncoder loads it"),
}
IMAGE_FAMILIES = ("align", "altclip", "chinese_clip", "clip", "siglip", "siglip2")  # one encoder each for texts, images
PYLATE_DENSE = "pylate.models.Dense.Dense"


Readers = Mapping[str, Callable[[Path], Any]]  # of modules, by their class


def read_modules(
    folder: Path, readers: Readers = MODULES, inputs: Sequence[str] = INPUT_MODULES
) -> list[tuple[str, Path]]:
    """Read modules.json as (class name, folder), in order."""
    path = folder / "modules.json"
    entries = load_json(path)
    if not isinstance(entries, list) or not entries:
        raise CheckpointError(f"{path} should hold a list of modules.")
    rows = []
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("type"), str):
            raise CheckpointError(f"{path}: module {number} should have an idx, a name, a path and a type.")
        if entry.get("idx", number) != number:  # sentence-transformers goes by the list, readers by idx
            raise CheckpointError(
                f"{path}: module {number} has the idx {entry['idx']!r}; list them in order, each once."
            )
        kind, name = entry["type"], entry["type"].rpartition(".")[2]
        is_known = kind.startswith("sentence_transformers.") or kind == PYLATE_DENSE
        if not is_known or name not in {*inputs, *readers}:
            why = NOT_COMPUTED.get(name, "code that comes with a checkpoint is never run")
            computed = ", ".join([*inputs, *readers])
            raise UnsupportedModel(f"{path} asks for the module {kind!r}: {why}; we compute {computed}.")
        rows.append((name, inside(folder, entry.get("path", ""))))
    names = [entry.get("name", number) for number, entry in enumerate(entries)]
    if len({str(name) for name in names}) < len(names):  # it would keep only the last one of a name
        raise CheckpointError(f"{path} gives several modules one name: {names}.")
    return rows


def read_parts(
    folder: Path, readers: Readers = MODULES, inputs: Sequence[str] = INPUT_MODULES
) -> tuple[str, Path, list[Any]]:
    """Return the kind and folder of the module that reads texts, and the modules behind it."""
    (kind, first), *rest = read_modules(folder, readers, inputs)
    if kind not in inputs or any(name in inputs for name, _ in rest):
        names = ", ".join([kind, *(name for name, _ in rest)])
        allowed = " or ".join(inputs)
        raise UnsupportedModel(f"{folder} holds {names}; one of {allowed} must come first, and only once.")
    return kind, first, [readers[name](path) for name, path in rest]


def read_sentence_modules(folder: Path, pooling: tuple[str, ...] | None) -> Model:
    """Read a bi-encoder of sentence-transformers 1.x to 6.x."""
    kind, first, parts = read_parts(folder)
    tail = parts[1:] if kind == "Transformer" else parts
    pooled = parts[0] if parts and kind == "Transformer" else None
    if kind == "Transformer" and not isinstance(pooled, Pooling):
        _check_reads_texts(first)
        raise UnsupportedModel(f"{folder}: a Pooling must follow the Transformer, else a text has no vector.")
    if not all(isinstance(part, nn.Module) for part in tail):
        raise UnsupportedModel(f"{folder}: {type(tail[0]).__name__} can't follow; a bi-encoder has one Pooling, first.")
    if kind == "StaticEmbedding":
        encoder, tokenizer = load_static(first)
        network = SentenceNetwork(encoder, pooling or ("mean",), tail)
        model, modes = Model(network, tokenizer, "sentence-transformers static", first), network.modes
    else:
        assert isinstance(pooled, Pooling)
        modes, includes_prompt = pooling or pooled.modes, pooled.includes_prompt
        model = read_transformer(
            first,
            "sentence-transformers",
            lambda config: SentenceNetwork(load_encoder(first, config), modes, tail, includes_prompt),
        )
    check_widths(first, model.network.encoder.width * len(modes), tail)
    _settle(model, folder)
    return model


def _settle(model: Model, folder: Path) -> None:
    """Read prompts, similarity and ranges of a bi-encoder into the model."""
    settings = model_settings(folder)
    model.prompts, model.default_prompt_name = settings.prompts, settings.default_prompt_name
    model.similarity, model.truncate_dim = settings.similarity, settings.truncate_dim
    width = model.network.num_outputs
    if model.truncate_dim is not None and model.truncate_dim > width:
        raise CheckpointError(f"{folder}: truncate_dim is {model.truncate_dim}, but vectors have dimension {width}.")
    model.ranges = _read_ranges(folder / RANGES_FILE, width)


def read_onnx(folder: Path, pooling: tuple[str, ...] | None) -> Model:
    """Read our ONNX export of a bi-encoder."""
    network = open_graph(folder, "bi", pooling)
    if (folder / "sentence_bert_config.json").is_file():
        model = read_transformer(folder, "munjang onnx", lambda config: network)
    else:  # static embeddings
        tokenizer = load_static_tokenizer(folder)
        model = Model(network, tokenizer, "munjang onnx static", folder)
        check_vocabulary(folder, tokenizer, model.network.encoder.vocab_size)
    _settle(model, folder)
    return model


def read_scorer_onnx(folder: Path) -> Model:
    """Read our ONNX export of a cross-encoder."""
    network = open_graph(folder, "cross")
    model = read_transformer(folder, "munjang onnx", lambda config: network)
    settings = model_settings(folder)
    model.prompts, model.default_prompt_name = settings.prompts, settings.default_prompt_name
    model.activation = _activation(settings.activation, model.config)
    return model


def read_transformer(
    folder: Path, layout: str, network_of: Callable[[Json], Network], is_plain: bool = False, is_late: bool = False
) -> Model:
    """Read a transformer's folder: the network from its config.json, and the tokenizer within the network's limits."""
    _check_reads_texts(folder)
    settings = EncoderSettings() if is_plain else encoder_settings(folder)
    if settings.late and not is_late:
        raise UnsupportedModel(f"{folder} sets {', '.join(settings.late)}, which only a MultiVectorEncoder has.")
    config = read_config(folder, settings)
    tokenizer, tokenizer_config = load_tokenizer(source_of(folder, "tokenizer.json"), config, settings)
    has_template = bool(tokenizer_config.get("chat_template") or list(folder.glob("chat_template.*")))
    if settings.has_messages or (is_plain and has_template):
        raise UnsupportedModel(
            f"{folder} has a chat template, into which sentence-transformers writes the texts; that is not computed. "
            "Take the template out of a copy of the folder to have the texts as they are."
        )
    network, is_lowered = network_of(config), settings.is_lowered
    model = Model(
        network, tokenizer, layout, folder, config, tokenizer_config, is_lowered, is_compact=is_compact(folder)
    )
    check_vocabulary(folder, tokenizer, model.network.encoder.vocab_size)
    limits = (tokenizer.max_length, model.network.encoder.max_tokens)
    tokenizer.max_length = min((limit for limit in limits if limit is not None), default=None)
    _check_room(folder, tokenizer, tokenizer.single)
    return model


def _check_reads_texts(folder: Path) -> None:
    family = read_json_if(folder / "config.json").get("model_type")
    if family in IMAGE_FAMILIES:
        raise UnsupportedModel(
            f"{folder} is a model of the family {family!r}: it reads images, and only texts are computed."
        )


def _check_room(folder: Path, tokenizer: Tokenizer, template: Template) -> None:
    """Refuse special tokens that leave no room for text."""
    if tokenizer.room(template) == 0:
        raise CheckpointError(
            f"{folder}: the tokenizer puts {template.num_special} special tokens around a text, and the model reads "
            f"{tokenizer.max_length}; they are not of one model."
        )


def check_widths(folder: Path, width: int, layers: list[nn.Module]) -> None:
    """Refuse layers that do not take the vectors that the one before gives."""
    for layer in layers:
        wanted = (
            layer.linear.in_features
            if isinstance(layer, Dense)
            else layer.norm.normalized_shape[0]
            if isinstance(layer, LayerNorm)
            else width
        )
        if wanted != width:
            raise CheckpointError(
                f"{folder}: {type(layer).__name__} takes vectors of dimension {wanted}, but gets {width}; "
                "the modules are not of one model."
            )
        width = layer.linear.out_features if isinstance(layer, Dense) else width


def _read_ranges(path: Path, width: int) -> Floats | None:
    if not path.is_file():
        return None
    try:
        ranges = load_file(path).get("ranges", np.zeros(0))
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); remove it and calibrate the model again.") from error
    if ranges.shape != (2, width) or not np.isfinite(ranges).all():
        raise CheckpointError(
            f"{path} should hold two finite rows of {width}; remove it and calibrate the model again."
        )
    return ranges.astype(np.float32)


def read_plain(folder: Path, pooling: tuple[str, ...] | None) -> Model:
    """Read a plain transformers folder: mean pooling, or the last token for a decoder."""

    def network_of(config: Json) -> Network:
        name = (config.get("architectures") or [""])[0]
        modes = ("lasttoken",) if name.endswith("ForCausalLM") and config.get("is_causal", True) else ("mean",)
        return SentenceNetwork(load_encoder(folder, config), pooling or modes, [])

    return read_transformer(folder, "transformers", network_of, is_plain=True)


def read_scorer_modules(folder: Path) -> Model:
    """Read a cross-encoder of sentence-transformers 5.4 and later: a classifier, dense layers, or LogitScore."""
    kind, first, parts = read_parts(folder)
    if kind != "Transformer":
        raise UnsupportedModel(f"{folder} begins with {kind}; a cross-encoder begins with a Transformer.")
    layout = "sentence-transformers cross-encoder"
    if not parts:
        model = read_transformer(first, layout, lambda config: load_classifier(first, config))
    elif len(parts) == 1 and isinstance(parts[0], LogitScore):
        model = read_transformer(first, layout, lambda config: _causal(first, config, parts[0]))
    else:
        model = read_transformer(first, layout, lambda config: _modular(first, config, parts))
    settings = model_settings(folder)
    model.prompts, model.default_prompt_name = settings.prompts, settings.default_prompt_name
    model.activation = _activation(settings.activation, model.config)
    _check_room(folder, model.tokenizer, model.tokenizer.pair)
    return model


def read_scorer_plain(folder: Path) -> Model:
    """Read ...ForSequenceClassification, as transformers and all cross-encoders before 5.4 are stored."""
    model = read_transformer(
        folder, "transformers classifier", lambda config: load_classifier(folder, config), is_plain=True
    )
    model.activation = _activation(None, model.config)
    _check_room(folder, model.tokenizer, model.tokenizer.pair)
    return model


def _modular(folder: Path, config: Json, parts: list[Any]) -> Network:
    pooled, layers = parts[0], parts[1:]
    is_known = isinstance(pooled, Pooling) and all(isinstance(layer, nn.Module) for layer in layers)
    if not is_known or not layers or not isinstance(layers[-1], Dense):
        raise UnsupportedModel(f"{folder}: a cross-encoder from modules is a Transformer, a Pooling and Dense layers.")
    encoder = load_encoder(folder, config)
    check_widths(folder, encoder.width * len(pooled.modes), layers)
    return PairNetwork(encoder, ModularHead(pooled.modes, layers))


def _causal(folder: Path, config: Json, score: LogitScore) -> Network:
    decoder = load_fallback(folder, config, "AutoModelForCausalLM")
    network = CausalScorer(decoder, pad_id(folder, config), score.yes, score.no)
    if max(score.yes, score.no or 0) >= network.vocab_size:
        raise CheckpointError(f"{folder}: an answer's token id is outside of the {network.vocab_size} the model has.")
    return network


def _activation(stated: str | None, config: Json) -> nn.Module | None:
    """Return the activation that the folder names, newest key first."""
    newer = config.get("sentence_transformers")
    path = stated or (newer.get("activation_fn") if isinstance(newer, dict) else None)
    path = path or config.get("sbert_ce_default_activation_function")
    return None if path is None else activation(path)


def _has(name: str) -> Callable[[Path], bool]:
    return lambda folder: (folder / name).is_file()


def _is_plain(folder: Path) -> bool:
    return (folder / "config.json").is_file() or is_adapter(folder)


Test = Callable[[Path], bool]
BI_LAYOUTS: list[tuple[str, Test, Callable[[Path, tuple[str, ...] | None], Model]]] = [
    ("onnx", is_onnx, read_onnx),
    ("sentence-transformers", _has("modules.json"), read_sentence_modules),
    ("model2vec", is_model2vec, read_model2vec),
    ("transformers", _is_plain, read_plain),
]
CROSS_LAYOUTS: list[tuple[str, Test, Callable[[Path], Model]]] = [
    ("onnx", is_onnx, read_scorer_onnx),
    ("sentence-transformers", _has("modules.json"), read_scorer_modules),
    ("transformers", _is_plain, read_scorer_plain),
]


def declared_kind(folder: Path) -> str:
    """Return SentenceTransformer, CrossEncoder or another class of sentence-transformers, as the folder says."""
    check_files(folder)
    left = [path.name for path in sorted(folder.glob("[0-9]_*")) if path.is_dir()]
    if left and not (folder / "modules.json").is_file():  # else it would pass for a plain folder, with mean pooling
        raise CheckpointError(
            f"{folder / 'modules.json'} is missing, though {left[0]} is there; copy the folder again."
        )
    declared = model_settings(folder).kind
    if declared is not None or (folder / "modules.json").is_file():
        return declared or "SentenceTransformer"
    if is_adapter(folder) and read_json(folder / CONFIG_FILE).get("task_type") == "SEQ_CLS":
        return "CrossEncoder"
    names = read_json_if(folder / "config.json").get("architectures")
    is_classifier = isinstance(names, list) and names and str(names[0]).endswith("ForSequenceClassification")
    return "CrossEncoder" if is_classifier else "SentenceTransformer"


def new_encoder(folder: Path) -> tuple[Encoder, Model]:
    """Return the encoder of any folder and the model around it, to start another model from."""
    check_files(folder)
    is_plain = not (folder / "modules.json").is_file()
    first = folder if is_plain else read_modules(folder)[0][1]
    model = read_transformer(
        first, "new", lambda config: SentenceNetwork(load_encoder(first, config), ("mean",), []), is_plain
    )
    encoder = model.network.encoder.own
    if encoder is None:
        raise UnsupportedModel(
            f"A new model can start from an architecture that we compute ourselves, not {model.config['model_type']!r}."
        )
    model.config.pop(RERANK_WEIGHT, None)  # it belonged to the old head
    return encoder, model
