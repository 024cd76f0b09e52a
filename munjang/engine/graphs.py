"""CUDA graphs: a whole network as one launch, for a few numbers of tokens.

T tokens of the whole batch, B texts. Threads that share an interpreter wait for each other at every call into torch, so
a batch makes as few as it can: its numbers are laid out on the host as the graph wants them, copied in one piece,
replayed, and the result is copied back. Where a batch is a little shorter than the graph, the end of the row is one
text that nobody asked for (at most 5 % of the slots). What was tokenized on the device is copied from there. The
graphs of a network share their memory, which is safe as long as one stream runs them one after the other, as the
executor does.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.nn.attention import MAX_TILED_LENGTH
from munjang.nn.base import Network
from munjang.nn.encoder import Encoder
from munjang.nn.norm import is_fused
from munjang.text.packing import Packed

MAX_FILLER_FRACTION = 0.05  # of a graph's slots
MAX_SMALL_GRAPH_TOKENS = 64  # up to here, for a single short text, every length gets a graph of its own
NUM_RUNS_BEFORE_CAPTURE = 3  # many sizes come once and never again


@dataclass(frozen=True)
class Captured:
    """A captured graph with the tensors that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    numbers: Tensor  # ids, positions, types if any, starts, one after the other
    out_BD: Tensor


class Graphs:
    """A network that runs as CUDA graphs where possible; the next call overwrites its result."""

    def __init__(self, network: Network, encoder: Encoder, budget: int) -> None:
        self.network, self.budget = network, budget
        self.weight = encoder.embeddings.word.weight
        self.known: dict[tuple[int, bool], Captured] = {}
        self.num_runs: Counter[tuple[int, bool]] = Counter()
        self.pool: Any = None  # torch's own handle

    def lay_out(self, batch: Packed) -> Packed:
        """Lay out the batch as a graph reads it, if there is or will be a graph of its size."""
        size = self.size_for(batch)
        if size is None:
            return batch.pinned()
        num_rows = 2 if batch.types_T is None else 3
        numbers = np.zeros(num_rows * size + max_texts(size) + 1, np.int64)
        for row, tensor in enumerate((batch.ids_T, batch.positions_T, batch.types_T)[:num_rows]):
            assert tensor is not None
            numbers[row * size : row * size + batch.num_tokens] = tensor.numpy()
        starts = numbers[num_rows * size :]
        starts[:] = size  # the rest of the row is the filler text
        starts[: len(batch.starts_B)] = batch.starts_B.numpy()
        return replace(batch, laid_out=torch.from_numpy(numbers).pin_memory())

    def size_for(self, batch: Packed) -> int | None:
        """Return the number of tokens of the graph that fits a batch; None: no graph fits."""
        num_tokens, is_skipping = batch.num_tokens, batch.skip is not None and bool(batch.skip.any())
        if not num_tokens or is_skipping or batch.max_length > MAX_TILED_LENGTH or not self._is_fused():
            return None
        if num_tokens <= MAX_SMALL_GRAPH_TOKENS:
            return num_tokens if len(batch.lengths) <= num_tokens else None
        is_full = (1 - MAX_FILLER_FRACTION) * self.budget <= num_tokens <= self.budget
        return self.budget if is_full and len(batch.lengths) < max_texts(self.budget) else None

    def _is_fused(self) -> bool:
        with torch.inference_mode():
            return is_fused(self.weight)

    def __call__(self, batch: Packed, otherwise: Callable[[Packed], Tensor]) -> Tensor:
        """Compute a batch that is laid out on the host or on the device; `otherwise` computes it without a graph."""
        size = self.size_for(batch)
        key = (size or 0, batch.types_T is not None)
        if key not in self.known:
            self.num_runs[key] += 1
            if size is None or self.num_runs[key] <= NUM_RUNS_BEFORE_CAPTURE:
                return otherwise(batch.to(self.weight.device))
            self.known[key] = self._capture(*key)
        captured = self.known[key]
        if batch.laid_out is not None:
            captured.numbers.copy_(batch.laid_out, non_blocking=True)
        else:
            _fill(captured.numbers, batch, key[0])
        captured.graph.replay()
        return captured.out_BD[: len(batch.lengths)]

    def _capture(self, size: int, has_types: bool) -> Captured:
        device, num_rows = self.weight.device, 3 if has_types else 2
        numbers = torch.zeros(num_rows * size + max_texts(size) + 1, dtype=torch.int64, device=device)
        numbers[num_rows * size + 1 :] = size

        def forward() -> Tensor:
            ids_T, positions_T, *types_T = numbers[: num_rows * size].view(num_rows, size).unbind(0)
            # on the host a batch of the longest texts, for what is decided there; on the device whatever is copied in
            lengths = np.full(1, min(size, MAX_TILED_LENGTH))
            starts_B = numbers[num_rows * size :].int()
            return self.network(Packed(ids_T, positions_T, types_T[0] if has_types else None, starts_B, lengths))

        forward()  # kernels are compiled and libraries get their memory before the capture
        stream = torch.cuda.current_stream(device)
        stream.synchronize()
        self.pool = torch.cuda.graph_pool_handle() if self.pool is None else self.pool
        graph = torch.cuda.CUDAGraph()
        # thread-local: other threads may go on copying and allocating meanwhile
        with torch.cuda.graph(graph, pool=self.pool, stream=stream, capture_error_mode="thread_local"):
            out_BD = forward()
        return Captured(graph, numbers, out_BD)


def _fill(numbers: Tensor, batch: Packed, size: int) -> None:
    """Write a batch of the device into what a graph reads; the rest of the row is the filler text."""
    columns = [batch.ids_T, batch.positions_T, *(() if batch.types_T is None else (batch.types_T,))]
    for row, column_T in enumerate(columns):
        numbers[row * size : row * size + len(column_T)] = column_T
        numbers[row * size + len(column_T) : (row + 1) * size] = 0
    starts = numbers[len(columns) * size :]
    starts[: len(batch.starts_B)] = batch.starts_B
    starts[len(batch.starts_B) :] = size


def max_texts(size: int) -> int:
    """Return how many texts a graph of `size` tokens takes, the filler text at its end included."""
    return size + 1 if size <= MAX_SMALL_GRAPH_TOKENS else size // 4
