"""Architectures that we do not implement, computed by `transformers` (extra): padded, sorted by tokens, and counted.

Code that comes with a checkpoint is never run: an architecture unknown to transformers is refused.
B texts, L longest text, T tokens without padding, D width, C labels, V words.
"""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from munjang.errors import CheckpointError, MissingExtra, UnsupportedModel
from munjang.nn.base import num_multiplied, weights_digest
from munjang.nn.blank import blank
from munjang.nn.rectangle import Rectangle
from munjang.text.packing import Packed

# Encoder-decoders of which sentence-transformers takes the encoder alone
ENCODER_CLASSES = {
    "t5": "T5EncoderModel",
    "mt5": "MT5EncoderModel",
    "umt5": "UMT5EncoderModel",
    "longt5": "LongT5EncoderModel",
    "switch_transformers": "SwitchTransformersEncoderModel",
}
MAX_PARAMETERS_PER_BYTE = 2  # 4 bits each
MAX_BUFFER_BYTES = 10**9  # of masks and tables that no file holds
POSITION_TABLES = ("position_embeddings", "embed_positions", "wpe")  # names of position tables in transformers


class TransformersModel(Rectangle):
    """A transformers model behind a packed batch."""

    engine = "transformers (padded)"

    def __init__(self, model: nn.Module, pad_id: int) -> None:
        super().__init__(pad_id)
        self.model = model
        self.takes_types = "token_type_ids" in inspect.signature(model.forward).parameters

    def call(self, batch: Packed, **options: Any) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Return the model's output, and the row and column of each real token in it."""
        padded = self.pad(batch)
        mask_BL = padded.mask_BL
        mask_BL[mask_BL.sum(1) == 0, 0] = 1  # attention over nothing is NaN, and a text without tokens is scored too
        if padded.types_BL is not None and self.takes_types:
            options["token_type_ids"] = padded.types_BL
        return self.model(input_ids=padded.ids_BL, attention_mask=mask_BL, **options), padded.places

    @property
    def vocab_size(self) -> int:
        return int(self._embedding.shape[0])

    @property
    def width(self) -> int:
        config: Any = self.model.config
        return int(getattr(config, "hidden_size", None) or self._embedding.shape[1])

    @property
    def max_tokens(self) -> int | None:
        """The longest text that a table of positions allows; None: there is no table."""
        limits = []
        for name, module in self.model.named_modules():
            is_position = any(word in name.rpartition(".")[2] for word in POSITION_TABLES)
            if is_position and isinstance(module, nn.Embedding):
                offset = getattr(module, "offset", 0) or (0 if module.padding_idx is None else module.padding_idx + 1)
                limits.append(module.num_embeddings - int(offset))
        return min(limits, default=None)

    @property
    def _embedding(self) -> Tensor:
        weight: Tensor = self.model.get_input_embeddings().weight  # type: ignore[operator]  # transformers' method
        return weight


class TransformersEncoder(TransformersModel):
    """A transformers encoder from packed ids to token vectors [T, D]."""

    def forward(self, batch: Packed) -> Tensor:
        if not batch.num_tokens:
            return torch.zeros(0, self.width, device=batch.ids_T.device)
        output, places = self.call(batch)
        states_TD: Tensor = output.last_hidden_state[places]
        return states_TD


class TransformersWords(TransformersModel):
    """A masked language model of transformers, from packed ids to a score per word [T, V]."""

    def forward(self, batch: Packed) -> Tensor:
        if not batch.num_tokens:
            return torch.zeros(0, self.width, device=batch.ids_T.device)
        output, places = self.call(batch)
        scores_TV: Tensor = output.logits[places]
        return scores_TV

    @property
    def width(self) -> int:
        return int(self.model.config.vocab_size)  # type: ignore[union-attr, arg-type]  # transformers' attribute


class TransformersClassifier(TransformersModel):
    """A transformers classifier from packed pairs to logits [B, C]."""

    is_trainable = False  # its head is not ours

    def forward(self, batch: Packed) -> Tensor:
        config: Any = self.model.config
        if len(batch.lengths) > 1 and config.get_text_config().pad_token_id is None:
            # decoders look for the last token that is no padding; without a padding id they take one text at a time
            return torch.cat([self(half) for half in batch.halves()])
        logits_BC: Tensor = self.call(batch)[0].logits.float()
        return logits_BC

    @property
    def encoder(self) -> TransformersModel:
        """The model itself, as transformers keeps the head inside."""
        return self

    @property
    def num_outputs(self) -> int:
        """The number of labels of a pair."""
        return int(self.model.config.num_labels)  # type: ignore[union-attr, arg-type]  # transformers' attribute

    @property
    def num_multiplied(self) -> int:
        """The number of weights that every token is multiplied with."""
        return num_multiplied(self)

    def digest(self) -> str:
        """Hash the weights and modules."""
        return weights_digest(self)

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Place the model on a device, in `dtype`."""
        return self.to(device, dtype).eval()


class CausalScorer(TransformersClassifier):
    """A decoder that answers with a word: the logit of `yes` after the last token, minus that of `no` if set."""

    def __init__(self, model: nn.Module, pad_id: int, yes: int, no: int | None) -> None:
        super().__init__(model, pad_id)
        self.yes, self.no = yes, no

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.yes, self.no)

    def forward(self, batch: Packed) -> Tensor:
        last_B = torch.from_numpy(batch.lengths - 1).clamp(min=0).to(batch.ids_T.device)
        kept = torch.unique(last_B)  # words behind other places need no logits: V is large
        output, _ = self.call(batch, logits_to_keep=kept)
        rows_B = torch.arange(len(last_B), device=last_B.device)
        last_BV = output.logits[rows_B, torch.searchsorted(kept, last_B)].float()
        score_B = last_BV[:, self.yes] if self.no is None else last_BV[:, self.yes] - last_BV[:, self.no]
        return score_B[:, None]


def load(folder: Path, task: str, model_type: str, overrides: Mapping[str, Any], num_bytes: int) -> nn.Module:
    """Load a transformers model; `task` is one of the Auto classes, `overrides` replace values of config.json.

    `num_bytes`: size of the weights, which a model is compared with before memory is taken for it.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("transformers", "transformers", f"The architecture {model_type!r} of {folder}") from error
    name = ENCODER_CLASSES.get(model_type, task) if task == "AutoModel" else task
    safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **overrides, **safe)
        _check_size(folder, getattr(transformers, name), config, num_bytes)
        model, report = getattr(transformers, name).from_pretrained(
            folder, config=config, dtype=torch.float32, output_loading_info=True, ignore_mismatched_sizes=True, **safe
        )
    except CheckpointError:
        raise
    except (ValueError, KeyError, ImportError) as error:
        raise UnsupportedModel(
            f"{folder}: the architecture {model_type!r} can't be computed, by transformers {transformers.__version__} "
            f"as {name} neither; code that comes with a checkpoint is never run. ({_first_line(error)})"
        ) from error
    except Exception as error:  # whatever its classes make of a damaged config.json or weights
        raise CheckpointError(f"transformers can't read {folder}: {_first_line(error)}") from error
    # it fills what is missing or does not fit with random numbers; an encoder's pooler is never used
    missing = sorted(key for key in report["missing_keys"] if task != "AutoModel" or "pooler" not in key)
    if missing or report["mismatched_keys"]:
        listed = ", ".join([*missing, *map(str, report["mismatched_keys"])][:5])
        raise CheckpointError(f"{folder}: config.json and the weights are not of one model: {listed} do not fit.")
    assert isinstance(model, nn.Module)
    return model


def _check_size(folder: Path, kind: Any, config: Any, num_bytes: int) -> None:
    """Refuse a config.json that asks for far more than the weights hold, by a model without memory."""
    build = kind.from_config if hasattr(kind, "from_config") else kind
    with blank():
        empty = build(config)
    wanted = sum(tensor.numel() for tensor in empty.parameters())
    beside = sum(tensor.nbytes for tensor in empty.buffers())
    if wanted > MAX_PARAMETERS_PER_BYTE * num_bytes + MAX_BUFFER_BYTES or beside > MAX_BUFFER_BYTES:
        raise CheckpointError(
            f"{folder}: config.json asks for {wanted:,} parameters and {beside:,} bytes beside them, and the weights "
            f"have {num_bytes:,} bytes; they are not of one model."
        )


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
