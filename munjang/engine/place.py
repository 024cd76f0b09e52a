"""Step 4, place: the rows of a batch to where they belong in the result.

B units of a batch, T tokens, D columns of a row.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from munjang.engine.copying import Copier
from munjang.engine.pack import Batch, Spot
from munjang.errors import NotFinite
from munjang.text.flat import cumulative
from munjang.types import Array, Floats, Ints
from munjang.vectors.sparse import SparseVectors


class Place(Protocol):
    """The container that collects the results of one call."""

    keeps_device: bool  # results stay on the device instead of coming to the host

    def __call__(self, batch: Batch, results: Tensor) -> int:
        """Store the results of a batch; return the number of units that had none before."""

    def done(self, num_units: int) -> Any:
        """Return the rows of all units; there may be fewer than this was made for."""


class HostRows:
    """An array with one row per unit."""

    keeps_device = False

    def __init__(self, num_units: int, num_columns: int, is_beside_gpu: bool = False) -> None:
        self.rows = np.empty((num_units, num_columns), np.float32)
        # Beside a GPU by torch, which leaves the interpreter to other threads meanwhile. Not on a CPU: in a forked
        # child torch would wait for threads that the fork left behind.
        self.target = torch.from_numpy(self.rows) if is_beside_gpu else None

    def __call__(self, batch: Batch, results: Tensor) -> int:
        if self.target is None:
            self.rows[batch.rows_B] = results.numpy()
        else:
            self.target.index_copy_(0, torch.from_numpy(batch.rows_B), results)
        return len(batch.rows_B)

    def done(self, num_units: int) -> Floats:
        return finite(self.rows[:num_units])


class DeviceRows:
    """A tensor on the device with one row per unit."""

    keeps_device = True

    def __init__(self, num_units: int, num_columns: int, device: torch.device) -> None:
        self.rows = torch.empty(num_units, num_columns, device=device)

    def __call__(self, batch: Batch, results: Tensor) -> int:
        if batch.spot is None:
            self.rows[torch.from_numpy(batch.rows_B).to(self.rows.device)] = results
        else:
            scatter(results, batch.spot, self.rows[batch.spot.first_row :])
        return len(batch.rows_B)

    def done(self, num_units: int) -> Tensor:
        rows = self.rows[:num_units]
        if not bool(torch.isfinite(rows).all()):
            raise not_finite(int((~torch.isfinite(rows).all(1)).sum()), num_units)
        return rows


class WindowRows:
    """An array with one row per unit; the rows of a window are put in order on the device and copied at once."""

    keeps_device = True

    def __init__(self, num_units: int, num_columns: int, device: torch.device) -> None:
        self.rows, self.device = np.empty((num_units, num_columns), np.float32), device
        self.copier = Copier(torch.from_numpy(self.rows), device)
        self.window_BD: Tensor | None = None  # of the window that is being computed
        self.num_missing = 0
        self.num_bad = torch.zeros(1, dtype=torch.int64).to(device)  # rows that are not numbers

    def __call__(self, batch: Batch, results: Tensor) -> int:
        spot = batch.spot
        assert spot is not None
        if self.window_BD is None:
            self.window_BD = torch.empty(spot.num_rows, self.rows.shape[1], device=self.device)
            self.num_missing = spot.num_rows
        scatter(results, spot, self.window_BD, self.num_bad)
        self.num_missing -= len(batch.rows_B)
        if not self.num_missing:
            self.copier(self.window_BD, spot.first_row)
            self.window_BD = None
        return len(batch.rows_B)

    def done(self, num_units: int) -> Floats:
        self.copier.done()
        if num_bad := int(self.num_bad):
            raise not_finite(num_bad, num_units)
        return self.rows[:num_units]


class TokenRows:
    """A list with one array of token vectors per text, without the tokens that are dropped or not among those kept."""

    keeps_device = False

    def __init__(
        self, num_units: int, num_columns: int = 0, dropped: Sequence[int] = (), kept: Sequence[int] | None = None
    ) -> None:
        self.rows: list[Floats] = [np.zeros((0, num_columns), np.float32)] * num_units
        self.dropped, self.kept = np.array(dropped, np.int64), None if kept is None else np.array(kept, np.int64)

    def __call__(self, batch: Batch, results: Tensor) -> int:
        edges, rows = cumulative(batch.packed.lengths), results.numpy()
        if len(self.dropped) or self.kept is not None:
            ids = batch.packed.ids_T.numpy()
            counts = ~np.isin(ids, self.dropped)
            counts &= True if self.kept is None else np.isin(ids, self.kept)
            rows, edges = rows[counts], np.concatenate([[0], np.cumsum(counts)])[edges]
        vectors = np.split(rows, edges[1:-1])
        for row, vectors_TD in zip(batch.rows_B.tolist(), vectors, strict=True):
            self.rows[row] = finite(vectors_TD.copy())
        return len(batch.rows_B)

    def done(self, num_units: int) -> list[Floats]:
        return self.rows[:num_units]


class Averages:
    """An array with one row per text: the average of its sequences, weighted by their tokens."""

    keeps_device = False

    def __init__(self, num_units: int, num_columns: int, is_unit: bool) -> None:
        self.sums = np.zeros((num_units, num_columns), np.float64)
        self.weights = np.zeros(num_units, np.float64)
        self.is_unit = is_unit

    def __call__(self, batch: Batch, results: Tensor) -> int:
        rows, lengths = batch.rows_B, batch.packed.lengths
        num_new = int((self.weights[np.unique(rows)] == 0).sum())
        np.add.at(self.sums, rows, results.numpy().astype(np.float64) * lengths[:, None])
        np.add.at(self.weights, rows, lengths)
        return num_new

    def done(self, num_units: int) -> Floats:
        means = self.sums / np.maximum(self.weights, 1)[:, None]
        if self.is_unit:
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return finite(means.astype(np.float32))


class Converted:
    """A container whose rows are converted at the end: to another precision or another library's array."""

    def __init__(self, place: Place, convert: Callable[[Any], Array | Tensor]) -> None:
        self.place, self.convert, self.keeps_device = place, convert, place.keeps_device

    def __call__(self, batch: Batch, results: Tensor) -> int:
        return self.place(batch, results)

    def done(self, num_units: int) -> Array | Tensor:
        return self.convert(self.place.done(num_units))


def scatter(results: Tensor, spot: Spot, window_BD: Tensor, num_bad: Tensor | None = None) -> None:
    """Put results on the device where their rows are in the window; count those that are not numbers."""
    from munjang.nn import cuda

    if results.is_cuda:
        spot.order_B.record_stream(torch.cuda.current_stream(results.device))
    cuda.scatter(results.contiguous(), spot.order_B, window_BD, num_bad)


def not_finite(num_bad: int, num_rows: int) -> NotFinite:
    """Return the error for a model that computed values that are not numbers."""
    return NotFinite(
        f"The model gives NaN or infinite values for {num_bad:,} of {num_rows:,} rows: its weights are too large for "
        "its dtype, its file is damaged, or its training diverged. Try dtype='float32'."
    )


def finite(rows: Floats) -> Floats:
    """Return results as they are; refuse those that are not numbers."""
    if not np.isfinite(rows.sum()):  # a sum of large numbers may be infinite by itself
        is_bad = ~np.isfinite(rows).all(axis=-1)
        if is_bad.any():
            raise not_finite(int(is_bad.sum()), len(rows))
    return rows


def spread(rows: Any, row_of: Ints) -> Any:
    """Repeat the rows of distinct units for all of their duplicates in the call."""
    if isinstance(rows, list):
        return [rows[row] for row in row_of]
    if isinstance(rows, SparseVectors):
        return rows.take(row_of)
    if not isinstance(rows, Tensor):
        return rows[row_of]
    if rows.device.type == "cpu":
        return torch.from_numpy(rows.numpy()[row_of])
    return rows[torch.from_numpy(row_of).to(rows.device)]
