"""Corrupt texts for denoising objectives, reproducibly.    T tokens, B texts."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from munjang.objectives.base import IGNORED
from munjang.text.flat import cumulative
from munjang.types import Bools, Ids, Ints


@dataclass(frozen=True)
class Corrupted:
    """Corrupted texts with special tokens, and the tokens to be predicted."""

    ids: Ids
    lengths: Ints
    targets: Ints  # one for each token of the texts that have to be predicted
    target_lengths: Ints


def delete(
    ids: Ids, lengths: Ints, is_special: Bools, vocab_size: int, mask_id: int | None, random: np.random.Generator
) -> Corrupted:
    """Delete three of five tokens, all but one of a text at most; the whole text is to be predicted (TSDAE)."""
    text_of = np.repeat(np.arange(len(lengths)), lengths)
    draw = random.random(len(ids))
    draw[is_special] = -1.0  # always kept
    kept = draw < 1 - DELETED_FRACTION
    # a text of which nothing would be left keeps the token with the smallest draw
    num_kept = np.bincount(text_of[kept & ~is_special], minlength=len(lengths))
    order = np.lexsort((np.where(is_special, 2.0, draw), text_of))
    first = order[np.minimum(cumulative(lengths)[:-1], len(order) - 1)]
    rescued = first[(num_kept == 0) & (lengths > 0)]
    kept[rescued] = True
    return Corrupted(
        ids[kept], np.bincount(text_of[kept], minlength=len(lengths)).astype(np.int64), ids.astype(np.int64), lengths
    )


def mask(
    ids: Ids, lengths: Ints, is_special: Bools, vocab_size: int, mask_id: int | None, random: np.random.Generator
) -> Corrupted:
    """Mask as BERT does: of 15 % of the tokens, 80 % become the mask, 10 % any token; those are predicted."""
    assert mask_id is not None
    draw = np.where(is_special, 1.0, random.random(len(ids)))
    chosen = draw < MASKED_FRACTION
    if len(ids) and not chosen.any() and not is_special.all():
        chosen[draw.argmin()] = True  # a batch of a few short texts: nothing to predict would be 0 / 0
    how = random.random(len(ids))
    damaged = np.where(chosen & (how < 0.8), mask_id, ids)
    other = random.integers(0, vocab_size, len(ids))
    damaged = np.where(chosen & (how >= 0.8) & (how < 0.9), other, damaged)
    targets = np.where(chosen, ids, IGNORED).astype(np.int64)
    return Corrupted(damaged.astype(np.int32), lengths, targets, lengths)


DELETED_FRACTION = 0.6  # of the tokens, as in the TSDAE paper
MASKED_FRACTION = 0.15
CORRUPTIONS: dict[str, Callable[..., Corrupted]] = {"delete": delete, "mask": mask}
