"""Split a batch into micro-batches of limited tokens, ready for the device. The split never changes the loss."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from munjang.text.flat import by_length
from munjang.text.packing import Packed, cut_batches
from munjang.training.batches import Batch, to_device
from munjang.types import Ints


@dataclass(frozen=True)
class MicroBatch:
    """Sequences that go through the network together.

    `packed` is sorted by length. `order_of` gives the position in it of the first sequences of all examples, then of
    the second ones, and so on.
    """

    packed: Packed
    order_of: Tensor | None
    known: dict[str, Tensor] | None  # about the examples, where each micro-batch has a loss of its own
    num_examples: int


@dataclass(frozen=True)
class SplitBatch:
    """One batch for the step."""

    batch: Batch
    micro_batches: tuple[MicroBatch, ...]
    order_of: Tensor  # positions of the batch's sequences in all micro-batches, one after the other
    known: dict[str, Tensor] | None  # about the whole batch, where that has the loss
    batch_tokens: int  # the limit of each micro-batch


def split(batch: Batch, is_separable: bool, batch_tokens: int, device: torch.device) -> SplitBatch:
    """Split by examples where each has a loss of its own, else by sequences."""
    is_pinned = device.type == "cuda"
    if not is_separable:
        orders = list(cut_batches(batch.lengths, batch_tokens))
        micro_batches = tuple(MicroBatch(_packed(batch, order, is_pinned), None, None, 0) for order in orders)
        positions = np.argsort(np.concatenate([np.zeros(0, np.int64), *orders]))
        return SplitBatch(batch, micro_batches, to_device(positions, device), batch.known(None, device), batch_tokens)
    totals = batch.lengths.reshape(batch.num_sequences, -1).sum(0)
    micro_batches = tuple(_whole(batch, rows, device, is_pinned) for rows in cut_batches(totals, batch_tokens))
    return SplitBatch(batch, micro_batches, torch.zeros(0, dtype=torch.int64), None, batch_tokens)


def _whole(batch: Batch, examples: Ints, device: torch.device, is_pinned: bool) -> MicroBatch:
    sequences = (np.arange(batch.num_sequences)[:, None] * batch.num_own + examples).reshape(-1)
    order = by_length(batch.lengths[sequences])
    packed = _packed(batch, sequences[order], is_pinned)
    order_of = to_device(np.argsort(order), device)
    return MicroBatch(packed, order_of, batch.known(examples, device), len(examples))


def _packed(batch: Batch, sequences: Ints, is_pinned: bool) -> Packed:
    packed = batch.take(sequences)
    return packed.pinned() if is_pinned else packed
