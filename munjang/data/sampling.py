"""Samplers: which examples share a batch, as a pure function of seed and epoch, so that a run can go on anywhere.

They fix the batch of the whole run; `rows_of_process` cuts it for the processes, so that their number changes nothing.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np

from munjang.data.examples import Examples, number_texts
from munjang.errors import InputError, unknown
from munjang.types import Ints

MAX_TRIES = 64  # groups or batches that are tried where one does not fit


@dataclass(frozen=True)
class SamplerInput:
    """The examples that a sampler draws from, and the randomness."""

    examples: Examples
    size: int  # of a batch, in examples
    random: np.random.Generator
    lengths: Ints | None = None  # of each example's texts together, in tokens or characters
    epoch: int = 0


Sampler: TypeAlias = Callable[[SamplerInput], list[Ints]]


def batches(
    examples: Examples,
    num_examples_per_batch: int,
    kind: str | Sampler = "random",
    seed: int = 0,
    epoch: int = 0,
    *,
    lengths: Ints | None = None,
) -> list[Ints]:
    """Return the rows of every batch of an epoch, in order; every row occurs once.

    Batches hold `num_examples_per_batch` rows, or fewer where the sampler's rule requires it.
    """
    if isinstance(kind, str) and kind not in SAMPLERS:
        raise unknown("sampler", kind, SAMPLERS)
    if num_examples_per_batch < 1:
        raise InputError(f"A batch needs at least 1 example, not {num_examples_per_batch}")
    if lengths is not None and len(lengths) != len(examples):
        raise InputError(f"{examples.name}: {len(lengths)} lengths for {len(examples)} rows")
    random = np.random.default_rng([seed, epoch])
    sampler = SAMPLERS[kind] if isinstance(kind, str) else kind
    return sampler(SamplerInput(examples, num_examples_per_batch, random, lengths, epoch))


def rows_of_process(rows: Ints, rank: int, world_size: int) -> Ints:
    """Return one process's rows of a batch: consecutive and as equal in number as can be, perhaps none for the last.

    >>> [rows_of_process(np.arange(5), rank, 3).tolist() for rank in range(3)]
    [[0, 1], [2, 3], [4]]
    """
    if not 0 <= rank < world_size:
        raise InputError(f"Process {rank} of {world_size}: they are numbered from 0 to {world_size - 1}")
    count, remainder = divmod(len(rows), world_size)
    start = rank * count + min(rank, remainder)
    return rows[start : start + count + (rank < remainder)]


def _random(source: SamplerInput) -> list[Ints]:
    return _cut(source.random.permutation(len(source.examples)), source.size)


def _no_duplicates(source: SamplerInput) -> list[Ints]:
    """Put no text into two rows of a batch: in random order, every row takes the first batch that can have it.

    For each text we remember the batch after its last one, and for each full batch the next that is not full, so that
    no row tries more than a few batches, however often its texts occur.
    """
    columns = source.examples.texts
    numbers = number_texts(chain.from_iterable(columns)).reshape(len(columns), -1)
    order = source.random.permutation(len(source.examples))
    behind = [0] * (int(numbers.max(initial=-1)) + 1)
    filled: list[list[int]] = []
    next_open = [0]  # the batch itself, where it is not full
    for row, texts in zip(order.tolist(), numbers[:, order].T.tolist(), strict=True):
        at = _follow(next_open, max([behind[text] for text in texts]))
        if at == len(filled):
            filled.append([])
            next_open.append(at + 1)
        filled[at].append(row)
        if len(filled[at]) == source.size:
            next_open[at] = at + 1
        for text in texts:
            behind[text] = at + 1
    _level(filled, numbers.T.tolist(), source.size)
    return [np.array(rows, np.int64) for rows in filled]


def _level(filled: list[list[int]], texts_of: list[list[int]], size: int) -> None:
    """Move rows of larger batches, one of each in turn, to those under half of `size`, or under the average if less.

    A row alone has nothing to be told apart from, yet would be an update like any other.
    """
    least = min((size + 1) // 2, sum(map(len, filled)) // max(len(filled), 1))
    givers = deque(rows for rows in filled if len(rows) > least)
    for taker in filled:
        taken = {text for row in taker for text in texts_of[row]} if len(taker) < least else set()
        failures = 0
        while len(taker) < least and failures < min(len(givers), MAX_TRIES):
            giver = givers.popleft()
            fitting = (row for row in reversed(giver[-MAX_TRIES:]) if taken.isdisjoint(texts_of[row]))
            row = next(fitting, None)
            if row is None:
                failures += 1
            else:
                giver.remove(row)
                taker.append(row)
                taken.update(texts_of[row])
                failures = 0
            if len(giver) > least:
                givers.append(giver)


def shortage(numbers: Ints, size: int) -> str | None:
    """Explain why batches without duplicates will be far from full, if so. `numbers` of the texts: [N, columns]."""
    in_row = np.sort(numbers, axis=1)
    is_first = np.concatenate([np.ones((len(in_row), 1), np.bool_), in_row[:, 1:] != in_row[:, :-1]], axis=1)
    most = int(np.bincount(in_row[is_first]).max(initial=0))
    if most * min(size, len(numbers)) < 2 * len(numbers):
        return None
    return (
        f"one text is in {most:,} of {len(numbers):,} rows, so that batches without duplicates hold about "
        f"{len(numbers) // most:,} rows, not {size:,}; sampler random keeps them full"
    )


def _follow(next_open: list[int], at: int) -> int:
    """Return the end of a chain, and shorten the chain on the way."""
    while next_open[at] != at:
        next_open[at] = next_open[next_open[at]]
        at = next_open[at]
    return at


def _by_label(source: SamplerInput) -> list[Ints]:
    """Put at least two rows of each label into a batch, where there are two; batches may lack a row or two for it."""
    waiting = _groups(source)
    source.random.shuffle(waiting)
    drawn: list[Ints] = []
    while waiting:
        taken, room = [], source.size
        for is_strict in (True, False):
            passed: list[Ints] = []
            while waiting and room and len(passed) < MAX_TRIES:
                group = waiting.pop()
                if _fits(len(group), room, source.size, is_strict):
                    taken.append(group)
                    room -= len(group)
                else:
                    passed.append(group)
            waiting.extend(reversed(passed))
        drawn.append(np.concatenate(taken))
    return drawn


def _fits(num_rows: int, room: int, size: int, is_strict: bool) -> bool:
    """Check the room. Strictly: no room for a single row may remain, and groups of three wait for odd batches."""
    if not is_strict:
        return num_rows <= room
    keeps_even = num_rows % 2 == 0 or room % 2 == 1 or size % 2 == 0
    return keeps_even and (num_rows == room or num_rows <= room - 2)


def _groups(source: SamplerInput) -> list[Ints]:
    """Group two or three rows of one label; a label with one row makes a group of one."""
    labels, size = source.examples.labels, source.size
    if labels is None:
        raise InputError(f"{source.examples.name}: the sampler by_label needs labels")
    if size < 2:
        raise InputError(f"The sampler by_label needs batches of at least 2 examples, not {size}")
    order = source.random.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    groups: list[Ints] = []
    wanted = 0.0  # groups of three: a batch of an odd size needs one
    for rows in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        wanted += len(rows) / size if size % 2 else 0.0
        # Odd for an odd number of rows, even for an even one: the rest are pairs.
        fitting = np.arange(len(rows) % 2, len(rows) // 3 + 1 if size > 2 else 0, 2)
        num_threes = int(fitting[np.abs(fitting - wanted).argmin()]) if len(fitting) else 0
        wanted -= num_threes
        cuts = np.concatenate([3 * np.arange(1, num_threes + 1), np.arange(3 * num_threes + 2, len(rows), 2)])
        groups += np.split(rows, cuts[cuts < len(rows)])
    return groups


def _by_length(source: SamplerInput) -> list[Ints]:
    """Put examples of similar length into a batch; batches come in random order."""
    lengths = source.lengths
    if lengths is None:
        lengths = np.sum([[len(text) for text in column] for column in source.examples.texts], axis=0)
    order = source.random.permutation(len(lengths))
    order = order[np.argsort(lengths[order], kind="stable")]
    # The smaller batch may be any, else it would always be the one of the longest texts.
    rest = len(order) % source.size
    at = int(source.random.integers(len(order) // source.size + 1)) * source.size
    parts = (order[:at], order[at : at + rest], order[at + rest :])
    drawn = [rows for part in parts for rows in _cut(part, source.size)]
    return [drawn[at] for at in source.random.permutation(len(drawn)).tolist()]


def _in_order(source: SamplerInput) -> list[Ints]:
    """Put consecutive rows into a batch; batches come in random order, cut at other places every epoch.

    All have the same size, or one row less: a short one at the end would have little to be told apart from.
    """
    num_rows = len(source.examples)
    rows = np.roll(np.arange(num_rows), int(source.random.integers(source.size)))
    drawn = np.array_split(rows, -(-num_rows // source.size))
    return [drawn[at] for at in source.random.permutation(len(drawn)).tolist()]


def _cut(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


SAMPLERS: dict[str, Sampler] = {
    "random": _random,
    "no_duplicates": _no_duplicates,
    "by_label": _by_label,
    "by_length": _by_length,
    "in_order": _in_order,
}
