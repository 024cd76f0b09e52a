"""Losses with a gradient cache: large batches in mini-batches, whose activations are computed twice, not kept."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from munjang.compat.losses.base import Loss, embed, made
from munjang.compat.losses.guided import Guided
from munjang.compat.losses.table import guided, mega_batch, ranking, symmetric_ranking
from munjang.compat.similarity_functions import cos_sim
from munjang.errors import InputError
from munjang.objectives.base import Objective


class RandContext:
    """The random state of now, to be repeated."""

    def __init__(self, *tensors: Any) -> None:
        self.cpu = torch.get_rng_state()
        self.devices = sorted({each.device.index for each in tensors if isinstance(each, Tensor) and each.is_cuda})
        self.states = [torch.cuda.get_rng_state(device) for device in self.devices]

    @contextmanager
    def again(self) -> Iterator[None]:
        """Repeat the random state inside the block."""
        with torch.random.fork_rng(self.devices):
            torch.set_rng_state(self.cpu)
            for device, state in zip(self.devices, self.states, strict=True):
                torch.cuda.set_rng_state(state, device)
            yield


class Cached(Loss):
    """A loss whose vectors are computed mini-batch by mini-batch."""

    uses_gradient_cache = True
    mini_batch_size: int
    mini_batch_num_tokens: int | None = None

    def __init__(self, model: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(model, *args, **kwargs)
        if type(model[0]).__name__ == "StaticEmbedding":
            raise ValueError(
                f"{type(self).__name__} is not compatible with a StaticEmbedding, whose inputs are not split by texts."
            )
        if self.mini_batch_num_tokens is not None and self.mini_batch_num_tokens <= 0:
            raise ValueError("mini_batch_num_tokens must be a positive integer or None.")

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        columns = list(sentence_features)
        parts = [mini_batches(column, self.mini_batch_size, self.mini_batch_num_tokens) for column in columns]
        if not torch.is_grad_enabled():
            rows = [torch.cat([embed(self.model, part) for part in column]) for column in parts]
            return self.compute_loss_from_embeddings(rows, labels)
        with torch.no_grad():
            states: list[list[RandContext]] = [[] for _ in parts]
            vectors = []
            for column, kept in zip(parts, states, strict=True):
                rows_of_column = []
                for part in column:
                    kept.append(RandContext(*part.values()))
                    rows_of_column.append(embed(self.model, dict(part)))
                vectors.append(torch.cat(rows_of_column))
        leaves = [rows.detach().requires_grad_() for rows in vectors]
        loss = self.compute_loss_from_embeddings(leaves, labels)
        loss.backward()  # type: ignore[no-untyped-call]
        unused = [str(place) for place, leaf in enumerate(leaves) if leaf.grad is None]
        if unused:
            raise ValueError(
                f"The loss computation of {type(self).__name__} did not use input column(s) {', '.join(unused)}."
            )
        gradients = [leaf.grad for leaf in leaves]
        found = loss.detach().requires_grad_()

        def second_pass(scale: Tensor) -> None:
            with torch.enable_grad():
                for column, kept, gradient in zip(parts, states, gradients, strict=True):
                    assert gradient is not None
                    starts = 0
                    for part, state in zip(column, kept, strict=True):
                        with state.again():
                            rows = embed(self.model, dict(part))
                        torch.autograd.backward(rows, gradient[starts : starts + len(rows)] * scale)
                        starts += len(rows)

        found.register_hook(second_pass)  # type: ignore[no-untyped-call]
        return found


class CachedGuided(Guided, Cached):
    """In-batch negatives with a guide and a gradient cache."""


def mini_batches(features: dict[str, Any], size: int, max_tokens: int | None) -> list[dict[str, Any]]:
    """Cut the features of a column into mini-batches, each without the padding that it does not need."""
    mask = features["attention_mask"]
    count = len(mask)
    if max_tokens is None:
        if size < 1:
            raise InputError(f"mini_batch_size must be at least 1, not {size}.")
        edges = [*range(0, count, size), count]
    else:
        edges = [0]
        lengths = mask.sum(1).tolist()
        tokens = 0
        for row, length in enumerate(lengths):
            if tokens and tokens + length > max_tokens:
                edges.append(row)
                tokens = 0
            tokens += length
        edges.append(count)
    return [_part(features, slice(a, b)) for a, b in pairwise(edges)]


def _part(features: dict[str, Any], rows: slice) -> dict[str, Any]:
    columns = features["attention_mask"][rows].bool().any(0).nonzero()
    width = int(columns.max()) + 1 if len(columns) else 1
    longest = features["attention_mask"].shape[1]

    def cut(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.ndim == 0:
            return value
        return value[rows, :width] if value.ndim > 1 and value.shape[1] == longest else value[rows]

    return {name: cut(value) for name, value in features.items()}


def cached_ranking(
    model: Any,
    scale: float = 20.0,
    similarity_fct: Any = cos_sim,
    mini_batch_size: int = 32,
    mini_batch_num_tokens: int | None = None,
    gather_across_devices: bool = False,
    directions: tuple[str, ...] = ("query_to_doc",),
    partition_mode: str = "joint",
    show_progress_bar: bool = False,
    hardness_mode: str | None = None,
    hardness_strength: float = 0.0,
) -> Objective:
    """MultipleNegativesRankingLoss with a gradient cache."""
    options = (directions, partition_mode, hardness_mode, hardness_strength)
    return ranking(model, scale, similarity_fct, gather_across_devices, *options)


def cached_symmetric(
    model: Any,
    scale: float = 20.0,
    similarity_fct: Any = cos_sim,
    mini_batch_size: int = 32,
    mini_batch_num_tokens: int | None = None,
    gather_across_devices: bool = False,
    show_progress_bar: bool = False,
) -> Objective:
    """MultipleNegativesSymmetricRankingLoss with a gradient cache."""
    return symmetric_ranking(model, scale, similarity_fct, gather_across_devices)


def cached_guided(
    model: Any,
    guide: Any,
    temperature: float = 0.01,
    mini_batch_size: int = 32,
    mini_batch_num_tokens: int | None = None,
    show_progress_bar: bool = False,
    margin_strategy: str = "absolute",
    margin: float = 0.0,
    contrast_anchors: bool = True,
    contrast_positives: bool = True,
    gather_across_devices: bool = False,
) -> Objective:
    """GISTEmbedLoss with a gradient cache."""
    return guided(model, guide, temperature, margin_strategy, margin, contrast_anchors, contrast_positives)


class MegaBatch(Cached):
    """MegaBatchMarginLoss; without mini-batches its activations are kept."""

    use_mini_batched_version: bool

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        if self.use_mini_batched_version:
            return super().forward(sentence_features, labels)
        return Loss.forward(self, sentence_features, labels)


CACHED: dict[str, type[Loss]] = {
    "CachedMultipleNegativesRankingLoss": made("CachedMultipleNegativesRankingLoss", cached_ranking, Cached),
    "CachedMultipleNegativesSymmetricRankingLoss": made(
        "CachedMultipleNegativesSymmetricRankingLoss", cached_symmetric, Cached
    ),
    "CachedGISTEmbedLoss": made("CachedGISTEmbedLoss", cached_guided, CachedGuided),
    "MegaBatchMarginLoss": made("MegaBatchMarginLoss", mega_batch, MegaBatch),
}
