"""Transformer under their name: our packed encoder, which takes their padded features and gives padded states.

B texts, L the longest in tokens, T tokens without padding, D width.
"""

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from munjang import checkpoint
from munjang.checkpoint.write import write_encoder
from munjang.compat.loading import TASKS, asked_dtype, asked_length, find_folder
from munjang.compat.modules.module import Features, InputModule
from munjang.compat.modules.tokenizing import Tokenizing
from munjang.compat.renames import deprecated_kwargs, transformer_kwargs_decorator
from munjang.engine.devices import DTYPES
from munjang.errors import InputError
from munjang.nn.encoder import TokenEncoder
from munjang.nn.network import PairNetwork, SentenceNetwork
from munjang.text.packing import Packed, pack


class EncoderView(nn.Module):
    """The packed encoder, called like a model of transformers, without a pooler: `auto_model`."""

    def __init__(self, stored: checkpoint.Model) -> None:
        super().__init__()
        self.stored = stored
        self.encoder: TokenEncoder = stored.network.encoder
        self._config: Any = None

    @property
    def config(self) -> Any:
        """Return config.json as transformers' class (extra), or as plain attributes without transformers."""
        if self._config is None:
            try:
                from transformers import AutoConfig

                given = {name: value for name, value in self.stored.config.items() if name != "model_type"}
                self._config = AutoConfig.for_model(self.stored.config["model_type"], **given)
            except (ImportError, KeyError, ValueError):
                self._config = SimpleNamespace(**self.stored.config, output_hidden_states=False)
            self._config._name_or_path = str(self.stored.folder)
        return self._config

    @property
    def embeddings(self) -> nn.Module:
        """Return the first layer, as to freeze it."""
        if self.encoder.own is None:
            raise AttributeError  # torch's __getattr__ is asked then, and says that there is none
        return self.encoder.own.embeddings

    @property
    def device(self) -> torch.device:
        """Return where the weights are."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """Return the type of the weights."""
        return next(self.parameters()).dtype

    def get_input_embeddings(self) -> nn.Embedding | None:
        """Return the table of word vectors."""
        return self.encoder.table

    def resize_token_embeddings(self, new_num_tokens: int, **kwargs: Any) -> nn.Embedding:
        """Give the table another number of rows; new rows are drawn like those of transformers."""
        old = self.encoder.table
        if old is None:
            raise InputError(f"The vocabulary of a {type(self.encoder).__name__} can't be changed.")
        table = nn.Embedding(new_num_tokens, old.embedding_dim, device=old.weight.device, dtype=old.weight.dtype)
        with torch.no_grad():
            table.weight.normal_(0, self.stored.config.get("initializer_range", 0.02))
            count = min(new_num_tokens, old.num_embeddings)
            table.weight[:count] = old.weight[:count]
        self.encoder.put_table(table)
        self.config.vocab_size = new_num_tokens
        return table

    def packed(self, features: Features) -> tuple[Packed, Tensor]:
        """Leave out the padding; return the batch, and where tokens are: [B, L]."""
        ids_BL = features["input_ids"]
        mask = features.get("attention_mask")
        mask_BL = torch.ones_like(ids_BL, dtype=torch.bool) if mask is None else mask.bool()
        lengths = mask_BL.sum(1).cpu().numpy().astype(np.int64)
        types = features.get("token_type_ids") if self.stored.tokenizer.has_types else None
        flat_types = None if types is None else types[mask_BL].cpu().numpy()
        batch = pack(ids_BL[mask_BL].cpu().numpy(), lengths, flat_types, None, self.encoder.uncounted_id)
        return batch.to(self.device), mask_BL

    def states(self, features: Features) -> tuple[Tensor, tuple[Tensor, ...] | None]:
        """Return the padded states of the last layer, and of all layers if the configuration asks for them."""
        batch, mask_BL = self.packed(features)
        own = self.encoder.own
        if getattr(self.config, "output_hidden_states", False) and own is not None:
            layers = tuple(_padded(states_TD, mask_BL) for states_TD in own.layers(batch))
            return layers[-1], layers
        return _padded(self.encoder(batch), mask_BL), None

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **kwargs: Any) -> Any:
        """Return the states as transformers does; `[0]` is the last layer's."""
        kwargs.pop("return_dict", None)
        states, layers = self.states({"input_ids": input_ids, "attention_mask": attention_mask, **kwargs})
        try:
            from transformers.modeling_outputs import BaseModelOutput
        except ImportError:
            return (states,) if layers is None else (states, layers)
        return BaseModelOutput(last_hidden_state=states, hidden_states=layers)


class Transformer(Tokenizing, InputModule):
    """The first module of a model: texts to token vectors, or pairs to scores."""

    config_file_name: ClassVar[str] = "sentence_bert_config.json"
    config_keys: ClassVar[list[str]] = ["max_seq_length", "do_lower_case"]

    @deprecated_kwargs(tokenizer_kwargs="processor_kwargs")
    @transformer_kwargs_decorator
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        max_seq_length: int | None = None,
        model_kwargs: dict[str, Any] | None = None,
        processor_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        cache_folder: str | None = None,
        do_lower_case: bool = False,
        *,
        transformer_task: str = "feature-extraction",
        backend: str = "torch",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if transformer_task not in TASKS:
            raise InputError(
                f"transformer_task={transformer_task!r} is not covered by munjang.compat: {', '.join(TASKS)} are."
            )
        hub = (kwargs.get("revision"), kwargs.get("token"), bool(kwargs.get("local_files_only")))
        folder = find_folder(model_name_or_path, None, cache_folder, *hub)
        dtype = DTYPES[asked_dtype(model_kwargs, folder)]
        if TASKS[transformer_task] == "cross":
            stored = checkpoint.load_cross(folder)
        else:
            stored = checkpoint.load_bi(folder, ("mean",))
        stored.network.encoder.to(dtype=torch.float32 if dtype == torch.int8 else dtype)
        self._hold(stored)
        length = asked_length(processor_kwargs, max_seq_length)
        if length is not None:
            self.max_seq_length = length

    @classmethod
    def around(cls, stored: checkpoint.Model) -> Self:
        """Put an encoder of ours under their name, over the same weights."""
        made = cls.__new__(cls)
        InputModule.__init__(made)
        made._hold(stored)
        return made

    def _hold(self, stored: checkpoint.Model) -> None:
        self.stored = stored
        self.auto_model = EncoderView(stored)
        is_pair = isinstance(stored.network, PairNetwork) or not hasattr(stored.network, "modes")
        self.head: Any = getattr(stored.network, "head", None) if is_pair else None
        self.is_scorer = is_pair
        self.do_lower_case = stored.is_lowered
        self._begin_tokenizing()

    @property
    def model(self) -> EncoderView:
        """Return `auto_model`, by its newer name."""
        return self.auto_model

    @property
    def config(self) -> Any:
        """Return the configuration of the encoder."""
        return self.auto_model.config

    def get_embedding_dimension(self) -> int:
        """Return the width of token vectors."""
        return self.stored.network.encoder.width

    @property
    def max_seq_length(self) -> Any:
        """Return the maximum number of tokens, special ones included."""
        self.follow_tokenizer()
        length = self.stored.tokenizer.max_length
        return math.inf if length is None else length

    @max_seq_length.setter
    def max_seq_length(self, tokens: int | None) -> None:
        self.set_length(tokens)

    def forward(self, features: Features, **kwargs: Any) -> Features:
        if self.is_scorer:
            batch, _ = self.auto_model.packed(features)
            features["scores"] = self.stored.network(batch)
            return features
        states, layers = self.auto_model.states(features)
        features["token_embeddings"] = states
        if layers is not None:
            features["all_layer_embeddings"] = layers
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write encoder, tokenizer and limits."""
        write_encoder(self.stored, Path(output_path), "Model", {})

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:
        folder = cls.load_dir_path(model_name_or_path, subfolder, **kwargs) or model_name_or_path
        return cls(folder)

    def sentence_network(self, modes: tuple[str, ...], tail: list[nn.Module], includes_prompt: bool) -> SentenceNetwork:
        """Return a network of ours from this encoder and what stands behind it, over the same weights."""
        return SentenceNetwork(self.auto_model.encoder, modes, tail, includes_prompt)


def _padded(states_TD: Tensor, mask_BL: Tensor) -> Tensor:
    padded_BLD = states_TD.new_zeros(*mask_BL.shape, states_TD.shape[-1])
    padded_BLD[mask_BL.to(states_TD.device)] = states_TD
    return padded_BLD
