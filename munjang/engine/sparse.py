"""Calls of sparse encoders: texts to rows of which only what is not zero leaves the device.

B texts of a batch, V dimensions, N values that are not zero.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.engine.distinct import Distinct
from munjang.engine.engine import Engine
from munjang.engine.pack import Batch
from munjang.engine.place import Place, finite
from munjang.engine.tokenize import Texts, Units
from munjang.nn.sparse import strongest
from munjang.text.packing import Packed
from munjang.types import Floats, Ids
from munjang.vectors.sparse import SparseVectors


@dataclass(frozen=True)
class SparseEncoding:
    """The options of one call of `encode` for sparse vectors."""

    prompt: str = ""
    max_active_dims: int | None = None
    batch_tokens: int | None = None
    name = "encoding"
    is_shared = False

    @property
    def window(self) -> int:
        return Texts.window

    def units(self, items: Distinct[str], engine: Engine) -> Units:
        network = engine.network
        return Texts(
            items, engine.tokenizer, network.encoder.vocab_size, self.prompt, "truncate", network.includes_prompt
        )

    def forward(self, network: Any) -> Callable[[Packed], Tensor]:
        forward: Callable[[Packed], Tensor] = network.forward  # not the network: heads look at lengths on the host
        return forward

    def finish(self, results: Tensor) -> Tensor:
        """Return rows, dimensions and values of what is not zero, as three columns [N, 3]."""
        rows_BV = results.float()
        if self.max_active_dims is not None:
            rows_BV = strongest(rows_BV, self.max_active_dims)
        places_N2 = rows_BV.nonzero()
        # float32 holds whole numbers up to 16 million exactly, more than any vocabulary has
        return torch.cat([places_N2.float(), rows_BV[places_N2[:, 0], places_N2[:, 1], None]], dim=1)

    def place(self, units: Units, engine: Engine) -> Place:
        return SparseRows(len(units), engine.network.num_outputs)


class SparseRows:
    """Rows of dimensions and values, joined to sparse vectors at the end."""

    keeps_device = False

    def __init__(self, num_units: int, dim: int) -> None:
        self.rows: list[tuple[Ids, Floats]] = [(np.zeros(0, np.int32), np.zeros(0, np.float32))] * num_units
        self.dim = dim

    def __call__(self, batch: Batch, results: Tensor) -> int:
        entries: Floats = results.numpy()
        edges = np.searchsorted(entries[:, 0], np.arange(len(batch.rows_B) + 1))
        for row, start, end in zip(batch.rows_B.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            self.rows[row] = entries[start:end, 1].astype(np.int32), entries[start:end, 2].copy()
        return len(batch.rows_B)

    def done(self, num_units: int) -> SparseVectors:
        lengths = np.fromiter((len(indices) for indices, _ in self.rows), np.int64, len(self.rows))
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        indices = np.concatenate([np.zeros(0, np.int32), *(indices for indices, _ in self.rows)])
        values = np.concatenate([np.zeros(0, np.float32), *(values for _, values in self.rows)])
        return SparseVectors(indptr, indices, finite(values[:, None])[:, 0], self.dim)
