"""A batch cut into chunks by a budget of tokens, ready for the device. Only memory decides the cut, never the loss."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from munjang.text.packing import Packed, cut_batches
from munjang.training.batches import Batch, to_device
from munjang.types import Ints


@dataclass(frozen=True)
class Chunk:
    """Sequences that go through the network together.

    `order_of` says where the sequences of the chunk (first ones of all its examples, then the second ones, ...) stand
    in `packed`, which is sorted by length.
    """

    packed: Packed
    order_of: Tensor | None
    known: dict[str, Tensor] | None  # about the examples, where each chunk has a loss of its own
    num_examples: int


@dataclass(frozen=True)
class Work:
    """One batch for the step."""

    batch: Batch
    chunks: tuple[Chunk, ...]
    order_of: Tensor  # where the sequences of the batch stand in its chunks, one after the other
    known: dict[str, Tensor] | None  # about the whole batch, where that has the loss
    budget: int  # by which it was cut


def cut(batch: Batch, is_separable: bool, budget: int, device: torch.device) -> Work:
    """Whole examples in each chunk where every example costs something by itself, else any sequences."""
    is_pinned = device.type == "cuda"
    if not is_separable:
        parts = list(cut_batches(batch.lengths, budget))
        chunks = tuple(Chunk(_packed(batch, part, is_pinned), None, None, 0) for part in parts)
        orders = np.concatenate([np.zeros(0, np.int64), *parts])
        return Work(batch, chunks, to_device(np.argsort(orders), device), batch.known(None, device), budget)
    totals = batch.lengths.reshape(batch.num_sequences, -1).sum(0)
    chunks = tuple(_whole(batch, examples, device, is_pinned) for examples in cut_batches(totals, budget))
    return Work(batch, chunks, torch.zeros(0, dtype=torch.int64), None, budget)


def _whole(batch: Batch, examples: Ints, device: torch.device, is_pinned: bool) -> Chunk:
    sequences = (np.arange(batch.num_sequences)[:, None] * batch.num_own + examples).reshape(-1)
    order = np.argsort(-batch.lengths[sequences], kind="stable")
    packed = _packed(batch, sequences[order], is_pinned)
    order_of = to_device(np.argsort(order), device)
    return Chunk(packed, order_of, batch.known(examples, device), len(examples))


def _packed(batch: Batch, sequences: Ints, is_pinned: bool) -> Packed:
    packed = batch.take(sequences)
    return packed.pinned() if is_pinned else packed
