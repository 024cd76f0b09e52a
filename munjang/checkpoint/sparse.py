"""Read sparse-vector folders: SPLADE, inference-free SPLADE, CSR and BGE-M3's weights of tokens."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from munjang.checkpoint import layouts, m3
from munjang.checkpoint.encoders import check_fields, family_of, fill, load_encoder, load_fallback, pad_id
from munjang.checkpoint.files import Json, Weights, inside, read_json, read_json_if, whole
from munjang.checkpoint.model import Model
from munjang.checkpoint.modules import MODULES, Pooling
from munjang.checkpoint.settings import EncoderSettings, model_settings, read_limit
from munjang.checkpoint.tokenizer import check_vocabulary, load_tokenizer
from munjang.errors import CheckpointError, UnsupportedModel, unknown
from munjang.nn.base import Network
from munjang.nn.blank import blank
from munjang.nn.fallback import TransformersWords
from munjang.nn.families.base import word_names
from munjang.nn.heads import check_weight
from munjang.nn.network import StaticEncoder
from munjang.nn.sparse import (
    SPLADE_ACTIVATIONS,
    SPLADE_POOLINGS,
    AutoEncoderHead,
    GivenScoresHead,
    SparseAutoEncoder,
    SparseNetwork,
    SpladeHead,
    TokenWeightHead,
)
from munjang.nn.words import WordHead
from munjang.types import Floats, Ids

INPUTS = ("Transformer", "MLMTransformer", "Router", "Asym", "SparseStaticEmbedding")
MAX_SCORED_TOKENS = 1000  # of a fit: each has a score for every word
NUM_ACTIVE_WORDS = 24  # of a token, on average, before training
NEVER = -100.0  # the score of tokens that are no words
LINEAR_FROM = 4.0  # GELU(x) is x here, to a thousandth
ROUTER_FILES = ("router_config.json", "config.json")


def read_splade(folder: Path) -> tuple[str, str]:
    """Read SpladePooling: how scores are pooled, and by which function."""
    path = folder / "config.json"
    config = read_json_if(path)
    pooling, function = config.get("pooling_strategy", "max"), config.get("activation_function", "relu")
    for what, value, allowed in (("pooling", pooling, SPLADE_POOLINGS), ("activation", function, SPLADE_ACTIVATIONS)):
        if value not in allowed:
            raise CheckpointError(f"{unknown(what, str(value), allowed)} ({path})")
    return pooling, function


def read_auto_encoder(folder: Path) -> SparseAutoEncoder:
    """Read SparseAutoEncoder; its decoder, the transposed encoder, is for training."""
    path = folder / "config.json"
    config = read_json(path)
    width, features, active = (whole(config.get(key), f"{path}: {key}") for key in ("input_dim", "hidden_dim", "k"))
    with blank():
        layer = SparseAutoEncoder(width, features, active, bool(config.get("normalize", False)))
    tensors = {name: tensor for name, tensor in Weights(folder).items() if not name.startswith("decoder.")}
    tensors.pop("stats_last_nonzero", None)
    if "encoder.weight" not in tensors and "decoder.linear.weight" in (stored := Weights(folder)):
        tensors["encoder.weight"] = stored["decoder.linear.weight"]  # one matrix under two names; either may be stored
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    wanted = {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    if shapes != wanted:
        raise CheckpointError(f"{folder}: the weights are {shapes}, but config.json asks for {wanted}.")
    for name, tensor in tensors.items():
        check_weight(f"{folder}: the tensor {name}", tensor)
    layer.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    return layer.requires_grad_(True)


READERS: dict[str, Callable[[Path], Any]] = {
    **{name: MODULES[name] for name in ("Pooling", "Dense", "LayerNorm", "Normalize", "Dropout")},
    "SpladePooling": read_splade,
    "SparseAutoEncoder": read_auto_encoder,
}


def read_sparse_modules(folder: Path) -> Model:
    """Read a SparseEncoder of sentence-transformers: SPLADE, CSR, or a router with a table for queries."""
    kind, first, parts = layouts.read_parts(folder, READERS, INPUTS)
    if kind in ("Router", "Asym"):
        if parts:
            raise UnsupportedModel(f"{folder}: modules behind a Router are not computed.")
        model = _read_routes(first)
    else:
        model = _read_side(kind, first, parts)
    settings = model_settings(folder)
    model.prompts, model.default_prompt_name = settings.prompts, settings.default_prompt_name
    model.similarity, model.max_active_dims = settings.similarity or "dot", settings.max_active_dims
    return model


def _read_routes(folder: Path) -> Model:
    """Read a Router with the routes query and document."""
    path = next((folder / name for name in ROUTER_FILES if (folder / name).is_file()), folder / ROUTER_FILES[0])
    config = read_json(path)
    types, structure = config.get("types"), config.get("structure")
    if not isinstance(types, dict) or not isinstance(structure, dict) or set(structure) != {"query", "document"}:
        raise UnsupportedModel(f"{path} should have the routes query and document, and no other.")
    options = config.get("parameters") or {}
    if options.get("default_route") not in (None, "document") or options.get("route_mappings"):
        raise UnsupportedModel(f"{path}: other routes than document for what is no query are not computed.")
    sides = {}
    for role, names in structure.items():
        if not isinstance(names, list) or not names or not all(name in types for name in names):
            raise CheckpointError(f"{path}: the route {role} should list modules of types, not {names!r:.60}.")
        kinds = [str(types[name]).rpartition(".")[2] for name in names]
        strange = [kind for at, kind in enumerate(kinds) if kind not in (INPUTS if at == 0 else READERS)]
        if strange:
            raise UnsupportedModel(f"{path} asks for the module {types[names[kinds.index(strange[0])]]!r}.")
        parts = [READERS[kind](inside(folder, name)) for kind, name in zip(kinds[1:], names[1:], strict=True)]
        sides[role] = (names, kinds[0], inside(folder, names[0]), parts)
    model = _read_side(*sides["document"][1:])
    if sides["query"][0] != sides["document"][0]:
        model.query = _read_side(*sides["query"][1:])
        if model.query.network.num_outputs != model.network.num_outputs:
            raise CheckpointError(
                f"{folder}: queries have {model.query.network.num_outputs} dimensions, documents "
                f"{model.network.num_outputs}; they are not of one model."
            )
    return model


def _read_side(kind: str, folder: Path, parts: list[Any]) -> Model:
    """Read one encoder and the modules behind it."""
    if kind == "SparseStaticEmbedding":
        if parts:
            raise UnsupportedModel(f"{folder}: modules behind SparseStaticEmbedding are not computed.")
        return _read_static(folder)
    if len(parts) == 1 and isinstance(parts[0], tuple):
        return layouts.read_transformer(folder, "splade", lambda config: load_splade(folder, config, *parts[0]))
    *before, last = parts or [None]
    if not before or not isinstance(before[0], Pooling) or not isinstance(last, SparseAutoEncoder):
        raise UnsupportedModel(
            f"{folder}: a sparse encoder is a Transformer with SpladePooling, or with Pooling and SparseAutoEncoder."
        )
    tail = before[1:]
    head = AutoEncoderHead(before[0].modes, tail, last)
    head.includes_prompt = before[0].includes_prompt
    model = layouts.read_transformer(folder, "csr", lambda config: SparseNetwork(load_encoder(folder, config), head))
    layouts.check_widths(folder, model.network.encoder.width * len(head.modes), tail)
    return model


def load_splade(folder: Path, config: Json, pooling: str, activation: str) -> Network:
    """Load a masked language model with its word head: ours if the family is known, else through transformers."""
    family = family_of(config)
    if family is None:
        wrapped = TransformersWords(load_fallback(folder, config, "AutoModelForMaskedLM"), pad_id(folder, config))
        return SparseNetwork(wrapped, GivenScoresHead(wrapped.width, pooling, activation))
    network, weights = load_encoder(folder, config), Weights(folder)
    names = dict(family.word_names)
    try:
        shape = family.read_words(config)
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / 'config.json'} has a value that can't be used: {error!r}") from error
    check_fields(shape, folder / "config.json")
    if names["bias"] not in weights:  # one vector under two names; either may be stored
        names["bias"] = names["words"].removesuffix("weight") + "bias"
    table = network.table
    assert table is not None
    is_tied = names["words"] not in weights or bool(torch.equal(weights[names["words"]].float(), table.weight))
    with blank():
        head = WordHead(shape, is_tied)
    if f"{names['dense']}.weight" not in weights:
        raise CheckpointError(
            f"{folder} has no word head ({names['dense']}): it is not a masked language model, so no SPLADE."
        )
    fill(head, word_names(shape, names, is_tied), weights, "", folder)
    return SparseNetwork(network, SpladeHead(head, pooling, activation))


def _read_static(folder: Path) -> Model:
    """Read SparseStaticEmbedding: a weight for every token, as queries of inference-free models have."""
    weights = Weights(folder)
    if "weight" not in weights or weights["weight"].ndim != 1:
        raise CheckpointError(f"{folder} should hold one weight per token.")
    check_weight(f"{folder}: the tensor weight", weights["weight"])
    tokenizer, stated = load_tokenizer(folder, {}, EncoderSettings(), has_special=False)
    tokenizer.max_length = read_limit(stated.get("model_max_length"), folder / "tokenizer_config.json")
    encoder = StaticEncoder(weights["weight"][:, None])
    check_vocabulary(folder, tokenizer, encoder.vocab_size)
    network = SparseNetwork(encoder, TokenWeightHead(encoder.vocab_size))
    return Model(network, tokenizer, "sparse static", folder, {}, stated)


def read_words_plain(folder: Path) -> Model:
    """Read ...ForMaskedLM as SPLADE, as sentence-transformers does."""
    model = layouts.read_transformer(
        folder, "splade", lambda config: load_splade(folder, config, "max", "relu"), is_plain=True
    )
    model.similarity = "dot"
    return model


def read_m3(folder: Path) -> Model:
    """Read BGE-M3's weights of tokens; special tokens have none."""
    first = layouts.read_modules(folder)[0][1]
    linear = m3.read_linear(folder / m3.WEIGHTS_FILE)
    if linear.out_features != 1:
        raise CheckpointError(f"{folder / m3.WEIGHTS_FILE} should give one weight per token.")

    def network_of(config: Json) -> Network:
        encoder = load_encoder(first, config)
        return SparseNetwork(encoder, TokenWeightHead(encoder.vocab_size, linear))

    model = layouts.read_transformer(first, "bge-m3", network_of)
    names = [model.tokenizer_config.get(f"{kind}_token") for kind in ("cls", "eos", "pad", "unk")]
    words = [name.get("content") if isinstance(name, dict) else name for name in names]
    ids = {model.tokenizer.rust.token_to_id(word) for word in words if isinstance(word, str)} - {None}
    for part, _ in model.tokenizer.single.parts:
        ids |= set(part.tolist())
    network: Any = model.network
    network.head.excluded = tuple(sorted(ids))
    model.similarity = "dot"
    return model


def _is_masked(folder: Path) -> bool:
    names = read_json_if(folder / "config.json").get("architectures")
    return isinstance(names, list) and any(str(name).endswith("ForMaskedLM") for name in names)


SPARSE_LAYOUTS: list[tuple[str, Callable[[Path], bool], Callable[[Path], Model]]] = [
    ("bge-m3", m3.has_weights, read_m3),
    ("sentence-transformers", lambda folder: (folder / "modules.json").is_file(), read_sparse_modules),
    ("transformers", _is_masked, read_words_plain),
]


def is_sparse(folder: Path) -> bool:
    """Tell whether a folder holds a sparse encoder or a masked language model, which is one."""
    return layouts.declared_kind(folder) == "SparseEncoder" or m3.has_weights(folder) or _is_masked(folder)


def load_sparse(folder: Path) -> Model:
    """Read a sparse encoder from a folder of any known layout."""
    for _, fits, read in SPARSE_LAYOUTS:
        if fits(folder):
            return read(folder)
    raise CheckpointError(
        f"{folder} is not a sparse encoder: it is neither of sentence-transformers nor a masked language model."
    )


def new_sparse(folder: Path, states_ND: Floats, ids_of_texts: Sequence[Ids]) -> Model:
    """Start a SPLADE model on the encoder of any folder: its word head is fitted to the token states of texts.

    By least squares each state gives the embedding of its own token, and so the words like it; words that many texts
    have weigh less. To begin with a token activates NUM_ACTIVE_WORDS words on average.
    """
    encoder, model = layouts.new_encoder(folder)
    family, table = family_of(model.config), encoder.table
    if family is None or table is None:
        raise UnsupportedModel(f"{folder}: a sparse model can't start from {model.config.get('model_type')!r}.")
    shape = family.read_words(model.config)
    head = WordHead(shape)
    special = np.concatenate([ids for ids, _ in model.tokenizer.single.parts])
    words_VW, ids_N = table.weight.detach().float().numpy(), np.concatenate(ids_of_texts)
    keeps_N = ~np.isin(ids_N, special)
    states_ND, ids_N = states_ND[keeps_N], ids_N[keeps_N]
    inputs = states_ND.astype(np.float64)
    if shape.has_dense_bias:
        inputs = np.column_stack([inputs, np.ones(len(inputs))])
    products = inputs.T @ inputs + np.eye(inputs.shape[1])
    solution = np.linalg.solve(products, inputs.T @ words_VW[ids_N].astype(np.float64))
    head.dense.weight.data = torch.from_numpy(solution[: shape.width].T.astype(np.float32))
    if shape.has_dense_bias:
        # GELU leaves what is far above zero as it is, and the norm takes the shift away again
        shift = LINEAR_FROM - float(np.quantile(inputs[:MAX_SCORED_TOKENS] @ solution, 0.001))
        head.dense.bias.data = torch.from_numpy((solution[-1] + shift).astype(np.float32))
    some = np.random.default_rng(0).permutation(len(ids_N))[:MAX_SCORED_TOKENS]
    if head.bias is not None:
        head.bias.data = _bias(head, states_ND[some], ids_N[some], table, ids_of_texts)
        head.bias.data[special.astype(np.int64)] = NEVER
    model.network = SparseNetwork(encoder, SpladeHead(head, "max", "relu"))
    model.similarity, model.layout = "dot", "new splade"
    return model


def _bias(head: WordHead, states_ND: Floats, ids_N: Ids, table: nn.Embedding, ids_of_texts: Sequence[Ids]) -> Tensor:
    """Return what is added to a word's score: most words end below zero, frequent ones just above it at best."""
    with torch.no_grad():
        scores_NV = head.scores(head.transform(torch.from_numpy(states_ND)), table.weight.float())
        threshold = scores_NV.flatten().topk(NUM_ACTIVE_WORDS * len(ids_N)).values[-1]
        own = scores_NV[torch.arange(len(ids_N)), torch.from_numpy(ids_N.astype(np.int64))].median()
    counts_V = np.zeros(head.shape.vocab_size)
    for ids in ids_of_texts:
        counts_V[np.unique(ids)] += 1
    rarity_V = np.log((len(ids_of_texts) + 1) / (counts_V + 0.5)) / np.log(2 * (len(ids_of_texts) + 1))
    return -threshold - (own - threshold).clamp(min=0) * torch.from_numpy(1 - rarity_V).float()
