"""Bound scores from above for a fraction of their cost.    A and B rows, D dimension, H columns of the head.

Turned so that the first H components hold most of the lengths, a score is the product of the heads plus that of the
tails, and that one is at most the product of the tails' lengths (Cauchy-Schwarz). So with the length of its tail as
one more column, the product of two short rows bounds the score from above; only pairs whose bound reaches the floor
are looked at in full, and none is lost.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from munjang.nn.threads import run_in_thread, set_threads

NUM_SAMPLE_ROWS = 1024  # of each side, to see how many pairs a bound lets through
NUM_BASIS_ROWS = 16_384  # that decide the directions
MIN_SCORES_FOR_BOUNDS = 1 << 27  # below, finding the bounds takes longer than they save
COLUMN_STEP = 16  # from one size of the head that is tried to the next
# A pair that is looked at in full costs as much as so many products of one column each per component: rows are fetched
# from memory, and a product of blocks does more at once (2 cores with AVX-512, docs/log.md 2026-11-15).
FULL_SCORE_COST = 100
TAIL_INFLATION = 1e-6  # of a squared length: what float32 loses when the head is taken off it
# What rounding may take off a bound, relative to the lengths: two factors and the result of 8 bits each
MAX_ROUNDING = {torch.float32: 1e-5, torch.bfloat16: 3 * 2.0**-9 + 1e-3}


@dataclass(frozen=True)
class Bounds:
    """Rows whose products, plus `slack`, bound the scores; `is_exact`: they are the scores."""

    a_AH: Tensor
    b_BH: Tensor
    slack: float
    is_exact: bool


def exact(a_AD: Tensor, b_BD: Tensor) -> Bounds:
    """Take the vectors as they are."""
    return Bounds(a_AD, b_BD, 0.0, True)


def bounds(a_AD: Tensor, b_BD: Tensor, floor: float) -> Bounds:
    """Return the cheapest bounds for finding the pairs that score at least `floor`."""
    dimension = a_AD.shape[1]
    is_small = min(len(a_AD), len(b_BD)) < NUM_SAMPLE_ROWS or len(a_AD) * len(b_BD) < MIN_SCORES_FOR_BOUNDS
    if floor <= 0 or not math.isfinite(floor) or dimension < 2 * COLUMN_STEP or is_small:
        return exact(a_AD, b_BD)
    longest = math.sqrt(float(_squares(a_AD).max()) * float(_squares(b_BD).max()))
    dtype, relative_cost = _dtype(a_AD)
    slack = MAX_ROUNDING[dtype] * longest
    turn_DD = _turn(a_AD, b_BD)
    columns, cost = _columns(a_AD, b_BD, turn_DD, floor - slack, relative_cost)
    if cost >= dimension:  # as a product of whole rows in float32, which needs no second look
        return exact(a_AD, b_BD)
    head_DH = turn_DD[:, :columns]
    a_AH = _short(a_AD, head_DH).to(dtype)
    return Bounds(a_AH, a_AH if b_BD is a_AD else _short(b_BD, head_DH).to(dtype), slack, False)


def _columns(a_AD: Tensor, b_BD: Tensor, turn_DD: Tensor, floor: float, relative_cost: float) -> tuple[int, float]:
    """Choose the columns of the head, and return the cost of a pair in products of one column in float32."""
    random = np.random.default_rng(0)
    a, b = (
        side[torch.from_numpy(random.permutation(len(side))[:NUM_SAMPLE_ROWS]).to(side.device)] @ turn_DD
        for side in (a_AD, b_BD)
    )
    dimension, best = a.shape[1], (a.shape[1], math.inf)
    products = torch.zeros(len(a), len(b), device=a.device)
    for columns in range(COLUMN_STEP, dimension, COLUMN_STEP):
        new = slice(columns - COLUMN_STEP, columns)
        products += a[:, new] @ b[:, new].T
        tails = [side[:, columns:].norm(dim=1) for side in (a, b)]
        passed = float((products + torch.outer(*tails) >= floor).float().mean())
        cost = relative_cost * (columns + 1 + FULL_SCORE_COST * dimension * passed)
        best = min(best, (columns, cost), key=lambda each: each[1])
    return best


def _turn(a_AD: Tensor, b_BD: Tensor) -> Tensor:
    """Return directions by how much of the lengths they hold, the most first."""
    sides = (a_AD,) if b_BD is a_AD else (a_AD, b_BD)
    samples = [side[:: max(len(side) // NUM_BASIS_ROWS, 1)].cpu().double() for side in sides]
    moments_DD = sum((each.T @ each for each in samples), torch.zeros((), dtype=torch.float64))
    return torch.linalg.eigh(moments_DD)[1].flip(1).float().to(a_AD.device)


def _short(vectors_ND: Tensor, head_DH: Tensor) -> Tensor:
    """Return the head and the length of the tail, which is raised a little: it is a difference of rounded numbers."""
    columns = head_DH.shape[1]
    short = torch.empty(len(vectors_ND), columns + 1, device=vectors_ND.device)
    for start in range(0, len(vectors_ND), 65_536):
        rows = slice(start, start + 65_536)
        torch.mm(vectors_ND[rows], head_DH, out=short[rows, :columns])
        squares = _squares(vectors_ND[rows])
        left = squares - _squares(short[rows, :columns])
        short[rows, columns] = (left.clamp(min=0) + TAIL_INFLATION * squares).sqrt()
    return short


def _squares(vectors_ND: Tensor) -> Tensor:
    return torch.einsum("nd,nd->n", vectors_ND, vectors_ND)


def _dtype(vectors: Tensor) -> tuple[torch.dtype, float]:
    """Choose the dtype of the short rows, and return the cost of a product relative to float32."""
    if vectors.device.type != "cpu":
        return torch.bfloat16, 0.25
    taken: dict[torch.dtype, float] = {}

    def measure() -> None:
        set_threads(1)
        for dtype in (torch.float32, torch.bfloat16):
            part = vectors[:NUM_SAMPLE_ROWS, :64].to(dtype).contiguous()
            for _ in range(6):
                start = time.thread_time()
                torch.mm(part, part.T)
                taken[dtype] = min(taken.get(dtype, math.inf), time.thread_time() - start)

    run_in_thread(measure)
    relative_cost = taken[torch.bfloat16] / max(taken[torch.float32], 1e-9)
    return (torch.bfloat16, relative_cost) if relative_cost < 0.8 else (torch.float32, 1.0)
