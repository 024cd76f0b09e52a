"""The model that is trained: its network in float32 on the device, and the way back to what a user holds."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from munjang import checkpoint
from munjang.bi_encoder import DOCUMENT_PROMPTS, BiEncoder
from munjang.checkpoint.model import RERANK_WEIGHT
from munjang.cross_encoder import CrossEncoder
from munjang.engine.devices import pick_dtype
from munjang.errors import InputError, UnsupportedModel
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.nn.encoder import Block
from munjang.nn.late import TokenNetwork
from munjang.nn.network import PairNetwork, SentenceNetwork
from munjang.nn.sparse import SparseNetwork
from munjang.sparse_encoder import SparseEncoder
from munjang.training.config import TrainConfig

Holder = BiEncoder | CrossEncoder | MultiVectorEncoder | SparseEncoder
Trained = SentenceNetwork | PairNetwork | TokenNetwork | SparseNetwork


QUERY, DOCUMENT = "query", DOCUMENT_PROMPTS[0]


@dataclass(frozen=True)
class Prompts:
    """A model's `prompts` and `default_prompt_name`."""

    prompts: Mapping[str, str]
    default_name: str | None = None


class Trainee:
    """A copy of a model's network that learns; the model itself changes when `give_back` is called."""

    def __init__(self, model: Holder, device: torch.device, config: TrainConfig) -> None:
        if model._engine.replicas is not None and model._engine.replicas.others:
            raise InputError("A model on several devices can't be trained; load it on one (torchrun starts several).")
        self.model, self.device = model, device
        if not model.network.is_trainable:
            raise UnsupportedModel(
                f"{type(model.network).__name__} is computed by another library as a whole and is not trained here; "
                "CrossEncoder.create puts a new head on the encoder of any folder."
            )
        if isinstance(model, SparseEncoder) and model.model.query is not None:
            raise UnsupportedModel("A model whose queries are read by a table of weights is not trained here.")
        self.network: Trained = _in_float32(model).to(device)
        self.is_cross = isinstance(model, CrossEncoder)
        self.prompts = Prompts(model.prompts, model.default_prompt_name)
        self.tokenizer = copy.copy(model.tokenizer)
        if config.max_length is not None:
            layout = self.tokenizer.pair if self.is_cross else self.tokenizer.single
            checkpoint.check_length(model.model, config.max_length, layout.num_special)
            self.tokenizer.max_length = config.max_length
        self.encoder, self.pad_id = self.network.encoder.own, self.network.encoder.uncounted_id
        if config.dropout is not None:
            _set_dropout(self.network, config.dropout)
        self.network.train()

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of one row of the network's outputs, by what an objective needs."""
        if isinstance(self.model, CrossEncoder):
            return {"logits": (self.model.num_labels,)}
        if isinstance(self.model, MultiVectorEncoder):
            return {"token_vectors": (self.model.dimension,)}
        if isinstance(self.model, SparseEncoder):
            return {"embeddings": (self.model.dimension,)}
        width, layers = self.model.width, 0 if self.encoder is None else self.encoder.shape.num_layers
        return {"embeddings": (width,), "layers": (layers, width), "token_states": (width,)}

    @property
    def facts(self) -> dict[str, int]:
        """Return the facts about the model that objectives are built from."""
        found = {"vocab_size": self.model.model.network.encoder.vocab_size}
        if isinstance(self.model, BiEncoder):
            found["width"] = self.model.width
        if self.encoder is not None:
            found["hidden_width"] = self.encoder.shape.width
            found["word_width"] = self.encoder.shape.embedding_width or self.encoder.shape.width
        return found

    @property
    def dropped(self) -> tuple[Tensor, ...]:
        """Return the tokens without a vector in late interaction: of queries, and of documents."""
        if not isinstance(self.model, MultiVectorEncoder):
            return ()
        return tuple(torch.tensor(self.model.dropped(role), dtype=torch.int64) for role in ("query", "document"))

    def skips(self, prompts: Sequence[str]) -> list[int]:
        """Count the leading tokens of each column's texts that pooling leaves out, if the model does so."""
        if self.network.includes_prompt:
            return [0 for _ in prompts]
        return [self.tokenizer.prompt_length(prompt) if prompt else 0 for prompt in prompts]

    def take_prompts(self, columns: Sequence[Sequence[str]]) -> str | None:
        """Adopt the prompts of the columns of each dataset, and return a note for the user."""
        self.prompts, note = learned(self.prompts, columns, self.is_cross)
        return note

    def name_labels(self, names: Sequence[str]) -> None:
        """Write the names of a cross-encoder's labels into its config.json."""
        if self.is_cross and len(names) == self.shapes["logits"][0] > 1:
            by_number = {str(number): name for number, name in enumerate(names)}
            numbers = {name: number for number, name in enumerate(names)}
            self.model.model.config = {**self.model.model.config, "id2label": by_number, "label2id": numbers}

    def weights(self) -> dict[str, Tensor]:
        """Return the network's parameters by name."""
        return {name: parameter.detach() for name, parameter in self.network.named_parameters()}

    def restore(self, weights: Mapping[str, Tensor]) -> None:
        """Load weights that `weights` returned."""
        parameters = dict(self.network.named_parameters())
        with torch.no_grad():
            for name, value in weights.items():
                parameters[name].copy_(value)

    def snapshot(self, weights: Mapping[str, Tensor] | None = None, dtype: str | None = None) -> Holder:
        """Copy the model as a user would load it, with other weights if given."""
        network = copy.deepcopy(self.network)
        if weights is not None:
            parameters = dict(network.named_parameters())
            with torch.no_grad():
                for name, value in weights.items():
                    parameters[name].copy_(value)
        network = _merged(network).requires_grad_(False)
        tokenizer, config = copy.copy(self.model.tokenizer), _config(self.model)
        model = replace(self.model.model, network=network, tokenizer=tokenizer, config=config, ranges=None)
        made = type(self.model)(model, self.device, pick_dtype(dtype, self.device, network))
        for name in set(self.model.settings) - {"max_length", "ranges"}:  # of the tokenizer, and of the weights before
            setattr(made, name, getattr(self.model, name))
        made.prompts, made.default_prompt_name = dict(self.prompts.prompts), self.prompts.default_name
        return made

    def save(self, output: Path) -> None:
        """Write the trained model, in float32 also where the given one computes in fewer bits."""
        (self.model if self.model.dtype == torch.float32 else self.snapshot(dtype="float32")).save(output)

    def give_back(self) -> None:
        """Put the trained weights into the model that was given."""
        trained = _merged(copy.deepcopy(self.network))
        model = self.model
        with torch.no_grad():
            cast(nn.Module, model.network).load_state_dict(trained.state_dict())
        model.network.to_compute(model.device, model.dtype)
        model.prompts, model.default_prompt_name = dict(self.prompts.prompts), self.prompts.default_name
        model.model.config = _config(model)
        model._forget()


def _config(model: Holder) -> dict[str, Any]:
    """Return config.json without the re-ranker's weight, which was measured before training."""
    return {name: value for name, value in model.model.config.items() if name != RERANK_WEIGHT}


def _in_float32(model: Holder) -> Trained:
    """Copy the network; one in 16 bits is read from its folder again, as it has lost digits."""
    if model.dtype in (torch.float32, torch.int8):
        return cast(Trained, copy.deepcopy(model.network)).float()
    if model._options is None:
        raise InputError(f"This model is in {model.dtype}; load it with dtype='float32' to train it.")
    folder = checkpoint.resolve(model._options[0])
    if isinstance(model, MultiVectorEncoder):
        loaded = checkpoint.load_late(folder)
    elif isinstance(model, SparseEncoder):
        loaded = checkpoint.load_sparse(folder)
    elif isinstance(model, BiEncoder):
        loaded = checkpoint.load_bi(folder, model.network.modes)
    else:
        loaded = checkpoint.load_cross(folder)
    network, held = (cast(Trained, each.network) for each in (loaded, model))
    shapes = [{name: value.shape for name, value in each.state_dict().items()} for each in (network, held)]
    if shapes[0] != shapes[1]:
        raise InputError(f"This model in {model.dtype} was changed after loading; load it with dtype='float32' first.")
    for mine, given in zip(network.parameters(), held.parameters(), strict=True):
        mine.requires_grad_(given.requires_grad)
    return network


def _set_dropout(network: Trained, probability: float) -> None:
    """Set the dropout of embeddings, attention, feed-forward layers and a cross-encoder's head."""
    if network.encoder.own is None:
        raise InputError("dropout can be set for encoders that Munjang computes itself only.")
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        elif isinstance(module, Block):
            module.attention_dropout = probability


def _merged(network: Trained) -> Trained:
    """Fold adapters into the weights beside them."""
    from munjang.training.lora import merge

    return merge(network)


def learned(own: Prompts, columns: Sequence[Sequence[str]], is_cross: bool = False) -> tuple[Prompts, str | None]:
    """Return the prompts after training, and a note about them for the user.

    `own` are the model's prompts before it, `columns` those of the text columns of each dataset: the first column's is
    that of queries, the others' that of documents. One that stands before every text becomes the default, too.

    >>> learned(Prompts({}), [("query: ", "passage: ")])[0]
    Prompts(prompts={'query': 'query: ', 'document': 'passage: '}, default_name=None)
    """
    given = [tuple(each) for each in columns if any(each)]
    if not given:
        return own, _unused(own)
    roles = {(each[0], prompt) for each in given for prompt in each[1:] or each}
    if len(roles) > 1:
        return own, "columns or datasets have different prompts, so the model keeps its own; set its prompts yourself"
    query, document = roles.pop()
    is_everywhere = len(given) == len(columns)
    kept = {name: text for name, text in own.prompts.items() if name not in (QUERY, *DOCUMENT_PROMPTS)}
    if is_cross:  # which puts a prompt before the first text of a pair only
        told = "a cross-encoder keeps the prompt of the first column only; write the others into the data"
        both = {**kept, QUERY: query}
        default = own.default_name if own.default_name in both else None
        found = Prompts(both, QUERY if is_everywhere else default)
        return found, told if document and any(len(each) > 1 for each in given) else None
    prompts = {**kept, QUERY: query, DOCUMENT: document}
    if is_everywhere and query == document:
        return Prompts(prompts, QUERY), None
    return Prompts(prompts, own.default_name if own.default_name in prompts else None), None


def _unused(own: Prompts) -> str | None:
    used = ", ".join(f"{name} {text!r}" for name, text in own.prompts.items() if text)
    return f"the model has prompts ({used}) and is trained without; give prompts to train with them" if used else None
