"""Mix several datasets in one run: which one each step draws its batch from, as a pure function of seed and epoch."""

from collections.abc import Callable, Sequence

import numpy as np

from munjang.errors import InputError, unknown
from munjang.types import Ints


def mix(
    sizes: Sequence[int], kind: str = "proportional", seed: int = 0, epoch: int = 0, temperature: float = 1.0
) -> Ints:
    """Return the dataset of every step of an epoch; `sizes` says how many batches each has.

    round_robin_shortest: in turn, until all of the smallest is seen.
    proportional: every batch of every dataset once, in random order.
    round_robin: in turn, until all of the largest is seen; smaller ones start again, in another order (`turns`).
    temperature: as many steps as there are batches, but dataset i has the weight size_i ** (1 / temperature): 1 is
    proportional, higher is more even. A dataset with more steps than batches starts again; of one with fewer, another
    part is seen in every epoch.

    >>> mix([1, 3], "round_robin").tolist()
    [0, 1, 0, 1, 0, 1]
    """
    if kind not in MIXES:
        raise unknown("mix of datasets", kind, MIXES)
    if not sizes or min(sizes) < 1:
        raise InputError(f"Every dataset needs at least one batch; they have {', '.join(map(str, sizes)) or 'none'}")
    if not 0 < temperature < np.inf:
        raise InputError(f"The temperature of a mix has to be above 0, not {temperature}")
    return MIXES[kind](np.array(sizes, np.int64), np.random.default_rng([seed, epoch]), temperature)


def turns(order: Ints) -> Ints:
    """Count how often a step's dataset was drawn before: turn // size is the round through it, turn % size the batch.

    >>> turns(np.array([0, 1, 0, 0, 1])).tolist()
    [0, 0, 1, 2, 1]
    """
    by_dataset = np.argsort(order, kind="stable")
    _, firsts, counts = np.unique(order[by_dataset], return_index=True, return_counts=True)
    counts_before = np.empty(len(order), np.int64)
    counts_before[by_dataset] = np.arange(len(order)) - np.repeat(firsts, counts)
    return counts_before


def _proportional(sizes: Ints, random: np.random.Generator, temperature: float) -> Ints:
    return random.permutation(np.repeat(np.arange(len(sizes)), sizes))


def _round_robin(sizes: Ints, random: np.random.Generator, temperature: float) -> Ints:
    return np.tile(np.arange(len(sizes)), int(sizes.max()))


def _round_robin_shortest(sizes: Ints, random: np.random.Generator, temperature: float) -> Ints:
    return np.tile(np.arange(len(sizes)), int(sizes.min()))


def _temperature(sizes: Ints, random: np.random.Generator, temperature: float) -> Ints:
    powers = np.exp((np.log(sizes) - np.log(sizes.max())) / temperature)  # no overflow, however small the temperature
    exact = powers / powers.sum() * sizes.sum()
    steps = np.floor(exact + 1e-9).astype(np.int64)  # 3.0 may have become 2.9999999
    left = int(sizes.sum() - steps.sum())
    steps[np.argsort(steps - exact, kind="stable")[:left]] += 1  # to the largest remainders
    return random.permutation(np.repeat(np.arange(len(sizes)), steps))


MIXES: dict[str, Callable[[Ints, np.random.Generator, float], Ints]] = {
    "proportional": _proportional,
    "round_robin": _round_robin,
    "round_robin_shortest": _round_robin_shortest,
    "temperature": _temperature,
}
