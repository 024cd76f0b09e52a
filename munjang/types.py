"""Records that several folders share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from munjang.errors import InputError

Array = NDArray[np.generic]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class TokenIds:
    """Ready token ids, special tokens included, one sequence per text: what `encode` takes instead of strings.

    >>> TokenIds([[101, 7592, 102], [101, 102]]).lengths.tolist()
    [3, 2]
    """

    sequences: Sequence[Sequence[int] | Array]

    def __post_init__(self) -> None:
        for row, sequence in enumerate(self.sequences):
            ids = np.asarray(sequence)
            if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
                raise InputError(
                    f"Token ids of text {row} must be a flat sequence of whole numbers, not {sequence!r:.80}"
                )
            if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < 2**31:  # they would wrap around
                raise InputError(
                    f"Token ids of text {row} lie between {ids.min()} and {ids.max()}: no model has those."
                )

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def lengths(self) -> Ints:
        """Tokens of each text."""
        return np.array([len(sequence) for sequence in self.sequences], np.int64)

    @property
    def flat(self) -> Ids:
        """All ids in one row."""
        parts = [np.asarray(sequence, np.int32) for sequence in self.sequences]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)


@dataclass(frozen=True)
class Hit:
    """One document of a ranking. `index` is its place in the list that was ranked."""

    index: int
    text: str
    score: float
    scale: str  # what the score is: "sigmoid" (0 to 1), "logit" (any number), or the activation's name
