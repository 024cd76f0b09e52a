"""CUDA graphs: the whole encoder as one launch, for a few numbers of tokens.

T tokens of the whole batch, B texts. A batch is copied into the places that the graph reads; where it is a little
shorter, the end of the row is filled up with one text that nobody asked for (at most 5 % of the slots). The graphs of
an encoder share their memory, which is safe as long as one stream runs them one after the other, as the executor does.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.nn.attention import LONGEST_IN_TILES
from munjang.nn.encoder import Encoder
from munjang.nn.norm import is_fused
from munjang.text.packing import Packed

MOST_FILLED = 0.05  # of the slots
SMALL = 64  # tokens: a lone short text, whose every length gets a graph of its own
SEEN = 3  # times a size is computed the plain way before it is captured: many are never seen again


@dataclass(frozen=True)
class Captured:
    """One graph with the places that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    batch: Packed
    states_TD: Tensor

    def __call__(self, batch: Packed) -> Tensor:
        num_tokens, num_texts = batch.num_tokens, len(batch.lengths)
        self.batch.ids_T[:num_tokens].copy_(batch.ids_T)
        self.batch.positions_T[:num_tokens].copy_(batch.positions_T)
        if self.batch.types_T is not None and batch.types_T is not None:
            self.batch.types_T[:num_tokens].copy_(batch.types_T)
        self.batch.starts_B[: num_texts + 1].copy_(batch.starts_B)
        self.batch.starts_B[num_texts + 1 :].fill_(self.batch.num_tokens)  # what is left is one text more
        self.graph.replay()
        return self.states_TD[:num_tokens]


class Graphs:
    """An encoder, run by graphs where that can be done; its result is overwritten by the next call."""

    def __init__(self, encoder: Encoder, budget: int) -> None:
        self.encoder, self.budget = encoder, budget
        self.known: dict[tuple[int, bool], Captured] = {}
        self.seen: Counter[tuple[int, bool]] = Counter()
        self.pool: Any = None  # torch's own handle

    def __call__(self, batch: Packed) -> Tensor:
        size = self.size_for(batch)
        if size is None:
            out_TD: Tensor = self.encoder(batch)
            return out_TD
        key = (size, batch.types_T is not None)
        if key not in self.known:
            self.seen[key] += 1
            if self.seen[key] <= SEEN:
                return self.encoder(batch)
            self.known[key] = self._capture(*key)
        return self.known[key](batch)

    def size_for(self, batch: Packed) -> int | None:
        """The number of tokens of the graph for a batch, or None."""
        num_tokens = batch.num_tokens
        if not num_tokens or batch.max_length > LONGEST_IN_TILES or not is_fused(self.encoder.embeddings.word.weight):
            return None
        if num_tokens <= SMALL:
            return num_tokens
        is_full = (1 - MOST_FILLED) * self.budget <= num_tokens <= self.budget
        return self.budget if is_full and len(batch.lengths) < self._most_texts(self.budget) else None

    def _most_texts(self, size: int) -> int:
        return size + 1 if size <= SMALL else size // 4

    def _capture(self, size: int, has_types: bool) -> Captured:
        device = self.encoder.embeddings.word.weight.device
        zeros = torch.zeros(size, dtype=torch.int64, device=device)
        starts_B = torch.full((self._most_texts(size) + 1,), size, dtype=torch.int32, device=device)
        starts_B[0] = 0
        # on the host a batch of the longest texts, for what is decided there; on the device whatever is copied in
        lengths = np.full(1, min(size, LONGEST_IN_TILES) if size <= SMALL else LONGEST_IN_TILES)
        batch = Packed(zeros, zeros.clone(), zeros.clone() if has_types else None, starts_B, lengths)
        self.encoder(_fresh(batch))  # kernels are compiled and libraries get their memory before the capture
        torch.cuda.current_stream(device).synchronize()
        if self.pool is None:
            self.pool = torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        stream = torch.cuda.current_stream(device)
        # thread-local: other threads may go on copying and allocating meanwhile
        with torch.cuda.graph(graph, pool=self.pool, stream=stream, capture_error_mode="thread_local"):
            states_TD = self.encoder(_fresh(batch))
        return Captured(graph, batch, states_TD)


def _fresh(batch: Packed) -> Packed:
    """The same tensors without what was worked out from other values of them."""
    return Packed(batch.ids_T, batch.positions_T, batch.types_T, batch.starts_B, batch.lengths)
