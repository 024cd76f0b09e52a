"""Encode with modules that have no model of ours: preprocess, forward, the rows of the features wanted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.compat.quantization import quantize_embeddings
from munjang.compat.util import batch_to_device
from munjang.nn.network import finish
from munjang.progress import Progress


def features_of(
    model: Any, texts: list[Any], prompt: str, batch_size: int, progress: bool, kwargs: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the features of each text, longest texts first inside, in the order given outside."""
    order = np.argsort([-_length(text) for text in texts], kind="stable").tolist()
    rows: list[Any] = [None] * len(texts)
    with Progress(len(texts), "encoding", enabled=progress) as bar, torch.inference_mode():
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            given = [texts[row] for row in batch]
            features = (
                model.preprocess(given, prompt=prompt or None, **kwargs)
                if prompt
                else model.preprocess(given, **kwargs)
            )
            features = model.forward(batch_to_device(features, model.device), **kwargs)
            for place, row in enumerate(batch):
                rows[row] = {name: _row(value, place, len(batch)) for name, value in features.items()}
            bar.advance(len(batch))
    return rows


@dataclass(frozen=True)
class Wanted:
    """The options of one call of encode."""

    output_value: str | None
    as_numpy: bool
    as_tensor: bool
    is_normalized: bool
    truncate_dim: int | None
    precision: str | None


def rows_of(rows: list[dict[str, Any]], wanted: Wanted, device: torch.device) -> Any:
    """Return what was asked for of features."""
    if wanted.output_value is None:
        return rows
    if wanted.output_value == "token_embeddings":
        masks = [row.get("attention_mask") for row in rows]
        states = [row["token_embeddings"] for row in rows]
        return [each if mask is None else each[mask.bool()] for each, mask in zip(states, masks, strict=True)]
    if not rows:
        return np.array([]) if wanted.as_numpy else torch.tensor([], device=device)
    sentences = torch.stack([row["sentence_embedding"] for row in rows])
    vectors = finish(sentences, wanted.truncate_dim, wanted.is_normalized or None)
    if wanted.precision not in ("float32", None):
        return quantize_embeddings(vectors.float().cpu().numpy(), wanted.precision)
    if wanted.as_numpy:
        return (vectors.float() if vectors.dtype == torch.bfloat16 else vectors).cpu().numpy()
    return vectors if wanted.as_tensor else list(vectors)


def _row(value: Any, place: int, size: int) -> Any:
    is_rows = isinstance(value, Tensor) and value.ndim > 0 and len(value) == size
    return value[place] if is_rows else value


def _length(text: Any) -> int:
    return len(text) if isinstance(text, str) else sum(map(len, text)) if isinstance(text, (list, tuple)) else 0
