"""Family: the reader of config.json, and the names of our tensors in transformers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from munjang.errors import UnsupportedModel
from munjang.nn.encoder import Architecture
from munjang.nn.heads import HeadShape
from munjang.nn.words import WordShape

Config = Mapping[str, Any]
Names = dict[str, tuple[str, ...]]  # our parameter -> theirs; several are stacked along the first axis


@dataclass(frozen=True)
class Family:
    """A row of the table in nn/families/__init__.py."""

    title: str  # as transformers spells its classes: BertModel, BertForSequenceClassification
    prefix: str  # in front of the encoder's tensors when a head was saved with it
    read: Callable[[Config], Architecture]
    names: Callable[[Architecture], Names]
    read_head: Callable[[Config], HeadShape]
    head_names: Mapping[str, str]  # dense, norm, out -> theirs, prefix included
    read_words: Callable[[Config], WordShape]  # of ...ForMaskedLM
    word_names: Mapping[str, str]  # dense, norm, bias, words -> theirs, prefix included


def linear(ours: str, *theirs: str, bias: bool = True) -> Names:
    """Map a linear layer or norm to its names; several of theirs make one fused layer of ours."""
    parts = ("weight", "bias") if bias else ("weight",)
    return {f"{ours}.{part}": tuple(f"{name}.{part}" for name in theirs) for part in parts}


def head_names(shape: HeadShape, names: Mapping[str, str]) -> Names:
    """Map the tensors of a classification head to their names."""
    parts = linear("dense", names["dense"], bias=shape.has_dense_bias) | linear("out", names["out"])
    return parts | (linear("norm", names["norm"], bias=shape.has_norm_bias) if shape.has_norm else {})


def word_names(shape: WordShape, names: Mapping[str, str], is_tied: bool) -> Names:
    """Map the tensors of a word head to their names."""
    parts = linear("dense", names["dense"], bias=shape.has_dense_bias)
    parts |= linear("norm", names["norm"], bias=shape.has_norm_bias)
    parts |= {"bias": (names["bias"],)} if shape.has_bias else {}
    return parts if is_tied else {**parts, "own_words": (names["words"],)}


def num_labels(config: Config) -> int:
    """Return the number of labels, as transformers counts them."""
    if "id2label" in config:
        return len(config["id2label"])
    return int(config.get("num_labels", 2))


def dropout_of(config: Config, *keys: str) -> float:
    """Return the first of several settings that config.json has."""
    return next((float(config[key]) for key in keys if config.get(key) is not None), 0.1)


def refuse_decoders(config: Config) -> None:
    """Refuse decoders and relative positions, other networks that BERT-like folders may hold."""
    if config.get("is_decoder") or config.get("add_cross_attention"):
        raise UnsupportedModel("This checkpoint is a decoder (is_decoder in config.json); only encoders are computed.")
    kind = config.get("position_embedding_type", "absolute")
    if kind != "absolute":
        raise UnsupportedModel(f"position_embedding_type {kind!r} in config.json is not computed; only 'absolute' is.")
