"""Paraphrase mining: find the most similar pairs in one set of texts or two.    A and B rows, D dimension, P pairs.

>>> from munjang import BiEncoder
>>> from munjang.tasks.paraphrases import paraphrases
>>> for pair in paraphrases(["A man eats.", "It rains.", "A man is eating."], model=BiEncoder.load(), max_pairs=1):
...     print(pair)
Pair(score=0.98..., first=0, second=2)
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from munjang.bi_encoder import BiEncoder
from munjang.engine.devices import pick_device
from munjang.errors import InputError
from munjang.nn.threads import run_in_thread
from munjang.tasks.paraphrases.best import Best
from munjang.tasks.paraphrases.bounds import Bounds, bounds
from munjang.tasks.paraphrases.cells import cell_tiles
from munjang.tasks.paraphrases.scan import Plan, all_tiles, scan
from munjang.tasks.vectors import unit_vectors
from munjang.types import Floats, Ints
from munjang.vectors.nearest import NO_PAIRS, Neighbours, nearest, nearest_in_blocks
from munjang.vectors.similarity import check_same_dimension, dot

MAX_EXACT_SCORES = {"cpu": 250_000_000_000, "mps": 250_000_000_000}  # some minutes on two cores
MAX_EXACT_SCORES_GPU = 50_000_000_000_000  # on a GPU
NUM_SAMPLE_ROWS = 512  # to guess what the worst of the best pairs scores
MIN_SCORES_FOR_GUESS = 4_000_000  # below, all pairs are looked at


class Pair(NamedTuple):
    """Two texts by their indices, and how similar they are."""

    score: float
    first: int
    second: int


@dataclass(frozen=True)
class Pairs:
    """Pairs as three columns, the best first; iterating gives `Pair`s. In one set the first index is the lower one."""

    scores_P: Floats
    first_P: Ints
    second_P: Ints

    def __len__(self) -> int:
        return len(self.scores_P)

    def __iter__(self) -> Iterator[Pair]:
        rows = zip(self.scores_P.tolist(), self.first_P.tolist(), self.second_P.tolist(), strict=True)
        return (Pair(*row) for row in rows)


def paraphrases(
    texts: Any,
    others: Any = None,
    model: BiEncoder | None = None,
    max_pairs: int = 500_000,
    min_score: float | None = None,
    max_neighbours: int | None = None,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> Pairs:
    """Find the pairs of texts with the highest cosine, in one set or between two; ready vectors work too.

    `max_neighbours`: a pair counts only if it is among so many of the nearest of one of its texts; so a text that
    occurs a thousand times can't fill the list. `is_exact` None: every pair is looked at, unless there are so many
    that only those in neighbouring cells of the space are (see docs/guides/paraphrases.md).

    Returns Pair records; raises InputError for vectors that are not finite.

    >>> pair = next(iter(paraphrases(["A cat sleeps.", "A kitten naps.", "Shares fell."], max_pairs=1)))
    >>> sorted((pair.first, pair.second))
    [0, 1]
    """
    a_AD = unit_vectors(texts, model, "texts", progress)
    b_BD = None if others is None else unit_vectors(others, model, "other texts", progress)
    return mine(a_AD, b_BD, max_pairs, min_score, max_neighbours, is_exact, device, progress)


def mine(
    a_AD: Floats,
    b_BD: Floats | None,
    max_pairs: int,
    min_score: float | None = None,
    max_neighbours: int | None = None,
    is_exact: bool | None = None,
    device: str | None = None,
    progress: bool | None = None,
) -> Pairs:
    """Find the pairs of rows with the highest inner product; see `paraphrases`."""
    if max_pairs < 1 or (max_neighbours is not None and max_neighbours < 1):
        raise InputError(f"max_pairs and max_neighbours must be at least 1, not {max_pairs} and {max_neighbours}.")
    if min_score is not None and not math.isfinite(min_score):
        raise InputError(f"min_score must be a number, not {min_score}.")
    check_same_dimension(a_AD, b_BD)
    if not len(a_AD) or (b_BD is not None and not len(b_BD)):
        return Pairs(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    lowest = -math.inf if min_score is None else min_score
    where = pick_device(device)
    a = torch.from_numpy(a_AD).to(where)
    b = a if b_BD is None else torch.from_numpy(b_BD).to(where)
    expected = 1.3 * max_pairs
    while True:  # above a guess of the floor, and again above a lower one if it was too high
        guess = run_in_thread(partial(_guess, a, b, expected, max_neighbours))
        if guess == -math.inf and max_neighbours is not None and len(a) * len(b) > MIN_SCORES_FOR_GUESS:
            return _of_nearest(a, b, max_pairs, lowest, max_neighbours, progress)
        floor = max(guess, lowest)
        best = Best(max_pairs, floor, max_neighbours, a is b)
        scan(a, b, *prepared(a, b, floor, is_exact), best, progress)
        rows, columns, scores = best.found()
        if len(scores) >= max_pairs or floor <= lowest:
            return Pairs(scores, rows, columns)
        expected *= 4


def _of_nearest(
    a: Tensor, b: Tensor, max_pairs: int, lowest: float, max_neighbours: int, progress: bool | None
) -> Pairs:
    """Find the pairs of each row and its nearest ones, where those are no more than are asked for."""
    own = np.arange(len(a) if a is b else 0)
    sides = [
        nearest(rows.cpu().numpy(), others.cpu().numpy(), max_neighbours, "dot", (own, own), a.device, progress)
        for rows, others in ([(a, b)] if a is b else [(a, b), (b, a)])
    ]
    return pairs_of_neighbours(sides, len(b), max_pairs, lowest)


def pairs_of_neighbours(
    sides: Sequence[Neighbours], num_columns: int, max_pairs: int, lowest: float = -math.inf
) -> Pairs:
    """Return the best pairs of rows and their neighbours: of one set in itself, or of two sets in each other."""
    keys, values = [], []
    for side, (scores_QK, others_QK) in enumerate(sides):
        ends = (np.repeat(np.arange(len(others_QK)), others_QK.shape[1]), others_QK.reshape(-1))
        if len(sides) == 1:
            ends = (np.minimum(*ends), np.maximum(*ends))
        first, second = reversed(ends) if side else ends
        keys.append(first * num_columns + second)
        values.append(scores_QK.reshape(-1))
    key, place = np.unique(np.concatenate(keys), return_index=True)
    scores = np.concatenate(values)[place]
    is_kept = (scores >= lowest) & np.isfinite(scores)
    best = Best(max_pairs, lowest, None, len(sides) == 1)
    best.add(key[is_kept] // num_columns, key[is_kept] % num_columns, scores[is_kept])
    rows, columns, scores = best.found()
    return Pairs(scores, rows, columns)


def prepared(a: Tensor, b: Tensor, floor: float, is_exact: bool | None) -> tuple[Bounds, Plan]:
    """Prepare a scan for the pairs above a floor: the bounds, and the tiles to look at."""
    return run_in_thread(lambda: (bounds(a, b, floor), _plan(a, b, is_exact)))


def _plan(a: Tensor, b: Tensor, is_exact: bool | None) -> Plan:
    """Plan to look at every pair, or at those of neighbouring cells where there are too many."""
    limit = MAX_EXACT_SCORES.get(a.device.type, MAX_EXACT_SCORES_GPU)
    num_scores = len(a) * len(b) // (2 if a is b else 1)
    if is_exact or (is_exact is None and num_scores <= limit):
        return all_tiles(len(a), len(b), a is b, a.device)
    return cell_tiles(a, b)


def _guess(a: Tensor, b: Tensor, expected: float, max_neighbours: int | None) -> float:
    """Guess from some rows a score that about so many pairs reach; minus infinity means nearly all pairs."""
    num_scores = len(a) * len(b) // (2 if a is b else 1)
    if num_scores <= MIN_SCORES_FOR_GUESS or expected >= num_scores:
        return -math.inf
    rows = np.random.default_rng(0).permutation(len(a))[:NUM_SAMPLE_ROWS]
    count = expected * len(rows) / len(a) * (2 if a is b else 1)
    count += 10 + 3 * math.sqrt(count)
    num_best = math.ceil(min(len(b), count if max_neighbours is None else max_neighbours + 1))
    own = (np.arange(len(rows)), rows) if a is b else NO_PAIRS
    values = nearest_in_blocks(a[torch.from_numpy(rows).to(a.device)], [b], num_best, dot, own, 64)[0].reshape(-1)
    if count >= len(values):
        return -math.inf
    return float(values.topk(math.ceil(count)).values[-1])
