"""Find every pair of rows that scores at least a floor, tile by tile.    A and B rows, D dimension, P pairs.

Scores are inner products; for cosine the rows have length one. Memory: the vectors, their bounds and a tile a thread.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from munjang.nn.threads import set_threads
from munjang.progress import Progress
from munjang.tasks.paraphrases.bounds import Bounds
from munjang.types import Bools, Floats, Ints

TILE_SHAPE = {"cpu": (1024, 4096)}  # rows and columns: what a core's cache holds
GPU_TILE_SHAPE = (16_384, 16_384)  # on a GPU
BLOCK_PAIRS = {"cpu": 512}  # that are scored in full at once
GPU_BLOCK_PAIRS = 1 << 17
MAX_CANDIDATE_RATIO = 1 / 64  # a tile with more candidates for its size is computed in full

Part = slice | Tensor  # rows of one side: a run, or a list
Wanted = Callable[[Ints, Ints], Bools]  # which of these pairs count


class Sink(Protocol):
    """Takes the pairs; `floor` may rise while they come."""

    floor: float

    def add(self, rows_P: Ints, columns_P: Ints, scores_P: Floats) -> None:
        """Take pairs that score at least the floor."""


@dataclass(frozen=True)
class Plan:
    """Tiles to look at, how many scores they hold, and which pairs count."""

    tiles: Iterator[tuple[Part, Part]]
    num_scores: int
    wanted: Wanted | None


def all_tiles(num_a: int, num_b: int, is_self: bool, device: torch.device) -> Plan:
    """Plan every row against every row; of a set with itself only the half above the diagonal."""
    height, breadth = TILE_SHAPE.get(device.type, GPU_TILE_SHAPE)

    def tiles() -> Iterator[tuple[Part, Part]]:
        for row in range(0, num_a, height):
            for column in range(row if is_self else 0, num_b, breadth):
                yield slice(row, min(row + height, num_a)), slice(column, min(column + breadth, num_b))

    num_scores = sum(min(height, num_a - row) * (num_b - (row if is_self else 0)) for row in range(0, num_a, height))
    return Plan(tiles(), num_scores, np.less if is_self else None)


def scan(a_AD: Tensor, b_BD: Tensor, near: Bounds, plan: Plan, sink: Sink, progress: bool | None = None) -> None:
    """Hand every pair of the plan that scores at least the sink's floor to the sink.

    The threads are its own; the caller's only waits, so that Ctrl-C ends all of them.
    """
    tiles, lock, stop = plan.tiles, threading.Lock(), threading.Event()
    is_cpu = a_AD.device.type == "cpu"
    num_workers = torch.get_num_threads() if is_cpu else 1

    def work() -> None:
        set_threads(1 if is_cpu else None)  # a tile for each core: no barrier between them
        room = Room(near.a_AH)
        with torch.inference_mode():
            while not stop.is_set():
                with lock:
                    tile = next(tiles, None)
                if tile is None:
                    return
                found = _found(a_AD, b_BD, near, tile, plan.wanted, sink.floor, room)
                with lock:
                    sink.add(*found)
                shown.advance(_length(tile[0]) * _length(tile[1]))

    with Progress(plan.num_scores, "comparing", enabled=progress) as shown, ThreadPoolExecutor(num_workers) as pool:
        futures = [pool.submit(work) for _ in range(num_workers)]
        try:
            for future in futures:
                future.result()
        finally:
            stop.set()  # after Ctrl-C or an error the others must not go on


def _found(
    a_AD: Tensor,
    b_BD: Tensor,
    near: Bounds,
    tile: tuple[Part, Part],
    wanted: Wanted | None,
    floor: float,
    room: "Room",
) -> tuple[Ints, Ints, Floats]:
    rows, columns = tile
    products = room.product(near.a_AH[rows], near.b_BH[columns])
    flat = room.places(products, floor - near.slack)
    is_exact = near.is_exact
    if not is_exact and len(flat) > MAX_CANDIDATE_RATIO * products.numel():
        products, is_exact = a_AD[rows] @ b_BD[columns].T, True
        flat = room.places(products, floor)
    i, j = _numbers(rows, flat // products.shape[1]), _numbers(columns, flat % products.shape[1])
    if wanted is not None:
        is_wanted = wanted(i, j)
        flat, i, j = flat[is_wanted], i[is_wanted], j[is_wanted]
        i, j = np.minimum(i, j), np.maximum(i, j)  # of one set; a cell may meet its pairs from either end
    if is_exact:
        scores = products.reshape(-1)[torch.from_numpy(flat).to(products.device)].cpu().numpy()
        return i, j, scores
    scores = pair_scores(a_AD, b_BD, i, j)
    is_kept = scores >= floor
    return i[is_kept], j[is_kept], scores[is_kept]


class Room:
    """Memory for the tiles of one thread: fresh pages for each would take as long as the search in them."""

    def __init__(self, like: Tensor) -> None:
        height, breadth = TILE_SHAPE.get(like.device.type, GPU_TILE_SHAPE)
        self.products = torch.empty(height * breadth, dtype=like.dtype, device=like.device)
        self.is_found = np.empty(height * breadth if like.device.type == "cpu" else 0, bool)

    def product(self, a_RH: Tensor, b_CH: Tensor) -> Tensor:
        """Multiply every row with every row; the result holds until the next call."""
        shape = (len(a_RH), len(b_CH))
        return torch.mm(a_RH, b_CH.T, out=self.products[: shape[0] * shape[1]].view(shape))

    def places(self, scores: Tensor, floor: float) -> Ints:
        """Return the flat indices where a matrix is at least `floor`."""
        if scores.device.type != "cpu":
            return torch.nonzero((scores >= floor).reshape(-1))[:, 0].cpu().numpy()
        flat, is_found = scores.reshape(-1), self.is_found[: scores.numel()]
        if scores.dtype is torch.bfloat16 and floor > 0:
            # numpy has no bfloat16; the bits of positive numbers have the numbers' order, those of negative ones a sign
            bits = int(torch.tensor(floor).to(torch.bfloat16).view(torch.int16))
            np.greater_equal(flat.view(torch.int16).numpy(), np.int16(bits), out=is_found)
        else:
            np.greater_equal(flat.float().numpy(), np.float32(floor), out=is_found)
        return np.flatnonzero(is_found)


def pair_scores(a_AD: Tensor, b_BD: Tensor, rows_P: Ints, columns_P: Ints) -> Floats:
    """Return the scores of these pairs."""
    scores = np.empty(len(rows_P), np.float32)
    block_pairs = BLOCK_PAIRS.get(a_AD.device.type, GPU_BLOCK_PAIRS)
    for start in range(0, len(rows_P), block_pairs):
        some = slice(start, start + block_pairs)
        i, j = (torch.from_numpy(side[some]).to(a_AD.device) for side in (rows_P, columns_P))
        scores[some] = a_AD.index_select(0, i).mul_(b_BD.index_select(0, j)).sum(1).cpu().numpy()
    return scores


def _numbers(part: Part, at: Ints) -> Ints:
    return at + part.start if isinstance(part, slice) else part.cpu().numpy()[at]


def _length(part: Part) -> int:
    return part.stop - part.start if isinstance(part, slice) else len(part)
