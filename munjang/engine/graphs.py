"""CUDA graphs: a whole network as one launch, for short texts that come alone.

T tokens of the whole batch, B texts. Launching the kernels of a short text one by one takes longer than computing them,
so every number of tokens up to MAX_GRAPH_TOKENS gets a graph of its own. A batch is laid out on the host as the graph
wants it, copied in one piece, replayed, and the result is copied back. Full batches gain nothing: they are launched
sooner than computed, and a graph would compute rows for more texts than they have (docs/log.md, 2026-11-19). The graphs
of a network share their memory, which is safe as long as one stream runs them one after the other, as here.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.nn.base import Network
from munjang.nn.encoder import Encoder
from munjang.nn.norm import is_fused
from munjang.text.packing import Packed

MAX_GRAPH_TOKENS = 64
NUM_RUNS_BEFORE_CAPTURE = 3  # many sizes come once and never again


@dataclass(frozen=True)
class Captured:
    """A captured graph with the tensors that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    numbers: Tensor  # ids, positions, types if any, starts, one after the other
    out_BD: Tensor


class Graphs:
    """A network that runs as CUDA graphs where possible; the next call overwrites its result."""

    def __init__(self, network: Network, encoder: Encoder) -> None:
        self.network = network
        self.weight = encoder.embeddings.word.weight
        self.known: dict[tuple[int, bool], Captured] = {}
        self.num_runs: Counter[tuple[int, bool]] = Counter()
        self.pool: Any = None  # torch's own handle

    def lay_out(self, batch: Packed) -> Packed:
        """Lay out the batch as a graph reads it, if there is or will be a graph of its size."""
        if not self._takes(batch):
            return batch.pinned()
        size, num_rows = batch.num_tokens, 2 if batch.types_T is None else 3
        numbers = np.zeros((num_rows + 1) * size + 2, np.int64)
        for row, tensor in enumerate((batch.ids_T, batch.positions_T, batch.types_T)[:num_rows]):
            assert tensor is not None
            numbers[row * size : (row + 1) * size] = tensor.numpy()
        starts = numbers[num_rows * size :]
        starts[:] = size  # texts that are not there are empty
        starts[: len(batch.starts_B)] = batch.starts_B.numpy()
        return replace(batch, laid_out=torch.from_numpy(numbers).pin_memory())

    def _takes(self, batch: Packed) -> bool:
        is_skipping = batch.skip is not None and bool(batch.skip.any())
        is_short = 0 < batch.num_tokens <= MAX_GRAPH_TOKENS and len(batch.lengths) <= batch.num_tokens
        with torch.inference_mode():
            return is_short and not is_skipping and is_fused(self.weight)

    def __call__(self, batch: Packed, otherwise: Callable[[Packed], Tensor]) -> Tensor:
        """Compute a batch that is laid out; `otherwise` computes it without a graph."""
        assert batch.laid_out is not None
        key = (batch.num_tokens, batch.types_T is not None)
        if key not in self.known:
            self.num_runs[key] += 1
            if self.num_runs[key] <= NUM_RUNS_BEFORE_CAPTURE:
                return otherwise(batch.to(self.weight.device))
            self.known[key] = self._capture(*key)
        captured = self.known[key]
        captured.numbers.copy_(batch.laid_out, non_blocking=True)
        captured.graph.replay()
        return captured.out_BD[: len(batch.lengths)]

    def _capture(self, size: int, has_types: bool) -> Captured:
        device, num_rows = self.weight.device, 3 if has_types else 2
        numbers = torch.zeros((num_rows + 1) * size + 2, dtype=torch.int64, device=device)
        numbers[num_rows * size + 1 :] = size

        def forward() -> Tensor:
            ids_T, positions_T, *types_T = numbers[: num_rows * size].view(num_rows, size).unbind(0)
            # on the host one text, for what is decided there; on the device whatever is copied in
            starts_B = numbers[num_rows * size :].int()
            types = types_T[0] if has_types else None
            return self.network(Packed(ids_T, positions_T, types, starts_B, np.full(1, size)))

        forward()  # kernels are compiled and libraries get their memory before the capture
        stream = torch.cuda.current_stream(device)
        stream.synchronize()
        self.pool = torch.cuda.graph_pool_handle() if self.pool is None else self.pool
        graph = torch.cuda.CUDAGraph()
        # thread-local: other threads may go on copying and allocating meanwhile
        with torch.cuda.graph(graph, pool=self.pool, stream=stream, capture_error_mode="thread_local"):
            out_BD = forward()
        return Captured(graph, numbers, out_BD)
