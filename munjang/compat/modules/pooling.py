"""Pooling under their name, over ours.    B texts, L the longest in tokens, D width, T tokens without padding."""

import inspect
import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from munjang.checkpoint.modules import POOLING_KEYS
from munjang.compat.modules.module import Features, Module
from munjang.nn import pooling
from munjang.text.packing import Packed


class Pooling(Module):
    """Token vectors to one vector per text; several modes stand side by side."""

    POOLING_MODES = tuple(pooling.POOLERS)
    config_keys: ClassVar[list[str]] = ["embedding_dimension", "pooling_mode", "include_prompt"]
    config_key_renames: ClassVar[dict[str, str]] = {"word_embedding_dimension": "embedding_dimension"}

    def __init__(
        self,
        embedding_dimension: int | None = None,
        pooling_mode: str | Sequence[str] = "mean",
        include_prompt: bool = True,
        **older: Any,
    ) -> None:
        super().__init__()
        if older:
            warnings.warn(
                f"The {', '.join(f'`{name}`' for name in older)} argument(s) are deprecated. "
                "Please use `pooling_mode` and `embedding_dimension` instead.",
                FutureWarning,
                stacklevel=2,
            )
            arguments = {"pooling_mode": pooling_mode, "embedding_dimension": embedding_dimension, **older}
            newer = _newer(arguments, "pooling_mode" if pooling_mode != "mean" else None)
            embedding_dimension, pooling_mode = newer["embedding_dimension"], newer["pooling_mode"]
        if embedding_dimension is None:
            raise TypeError("Pooling needs embedding_dimension, the width of token vectors.")
        modes = (pooling_mode,) if isinstance(pooling_mode, str) else tuple(pooling_mode)
        for mode in modes:
            if mode not in self.POOLING_MODES:
                allowed = self.POOLING_MODES
                raise ValueError(f"Invalid pooling mode: {mode!r}. Valid pooling modes are: {allowed}.")
        self.embedding_dimension = embedding_dimension
        self.pooling_mode: Any = modes[0] if len(modes) == 1 else modes
        self.include_prompt = include_prompt
        self.pooling_output_dimension = len(modes) * embedding_dimension

    @property
    def modes(self) -> tuple[str, ...]:
        """Return the modes as a tuple."""
        return (self.pooling_mode,) if isinstance(self.pooling_mode, str) else tuple(self.pooling_mode)

    def forward(self, features: Features, **kwargs: Any) -> Features:
        states_BLD = features["token_embeddings"]
        mask = features.get("attention_mask")
        bounds = features.get("cu_seq_lens_q")
        if bounds is not None:  # all texts in one row, one behind the other
            lengths = bounds.diff().tolist()
            states_BLD = torch.nn.utils.rnn.pad_sequence(states_BLD[0].split(lengths), batch_first=True)
            mask = torch.arange(max(lengths, default=0)) < torch.tensor(lengths)[:, None]
            mask = mask.to(states_BLD.device)
        if mask is None or mask.shape[-1] != states_BLD.shape[1]:
            mask = torch.ones(states_BLD.shape[:-1], device=states_BLD.device, dtype=torch.int64)
        skip = None if self.include_prompt else features.get("prompt_length")
        if isinstance(skip, Tensor):
            skip = int(skip.reshape(-1)[0])
        tokens_TD, batch = packed(states_BLD, mask.bool(), skip)
        pooled = pooling.pool(tokens_TD, batch, self.modes).to(states_BLD.dtype)
        if "cls_token_embeddings" in features and "cls" in self.modes:
            parts = list(pooled.chunk(len(self.modes), dim=-1))
            parts[self.modes.index("cls")] = features["cls_token_embeddings"]
            pooled = torch.cat(parts, dim=-1)
        features["sentence_embedding"] = pooled
        return features

    def get_embedding_dimension(self) -> int:
        """Return the width of a pooled vector."""
        return self.pooling_output_dimension

    def get_pooling_mode_str(self) -> str:
        """Return the modes joined by +."""
        return "+".join(self.modes)

    @classmethod
    def load_config(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        config = super().load_config(*args, **kwargs)
        return _newer(config, "pooling_mode" if "pooling_mode" in config else None)


# what a caller sees, and what reads the settings of a folder: their parameters, without `older`
Pooling.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("embedding_dimension", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("pooling_mode", inspect.Parameter.POSITIONAL_OR_KEYWORD, default="mean"),
        inspect.Parameter("include_prompt", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=True),
    ]
)


def packed(states_BLD: Tensor, mask_BL: Tensor, skip: int | None = None) -> tuple[Tensor, Packed]:
    """Leave out the padding: the tokens [T, D], and a batch that says where each text begins."""
    lengths_B = mask_BL.sum(1)
    starts_B = torch.cat([lengths_B.new_zeros(1), lengths_B.cumsum(0)]).int()
    lengths = lengths_B.cpu().numpy().astype(np.int64)
    none_T = torch.zeros(int(lengths.sum()), dtype=torch.int64, device=states_BLD.device)
    skips = np.minimum(np.full(len(lengths), skip), np.maximum(lengths - 1, 0)) if skip else None
    return states_BLD[mask_BL], Packed(none_T, none_T, None, starts_B, lengths, skips)


def _newer(arguments: dict[str, Any], stated: str | None) -> dict[str, Any]:
    """Translate the booleans and the dimension's name of older versions."""
    found = {name: value for name, value in arguments.items() if name not in POOLING_KEYS}
    if "word_embedding_dimension" in found:
        found["embedding_dimension"] = found.pop("word_embedding_dimension")
    unknown = found.keys() - {"embedding_dimension", "pooling_mode", "include_prompt"}
    if unknown:
        raise TypeError(f"Pooling got an unexpected keyword argument {sorted(unknown)[0]!r}")
    older = [name for name in POOLING_KEYS if name in arguments]
    if older and stated is None:
        modes = tuple(mode for name, mode in POOLING_KEYS.items() if arguments.get(name)) or ("mean",)
        found["pooling_mode"] = modes[0] if len(modes) == 1 else modes
    return found
