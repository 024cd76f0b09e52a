"""Texts of random tokens, to measure a network without real text."""

from collections.abc import Sequence

import numpy as np

from munjang.nn.encoder import Encoder
from munjang.text.packing import Packed, pack

SAMPLE_TOKENS = 32


def sample(
    encoder: Encoder, lengths: Sequence[int], has_ends: bool = False, num_distinct: Sequence[int | None] = ()
) -> Packed:
    """Return random texts, equal in every call.

    `has_ends` adds the special tokens around every text; `num_distinct` is the number of distinct tokens in each of
    the first texts (None, and all further texts: any).
    """
    shape, (before, behind) = encoder.shape, encoder.ends if has_ends else ((), ())
    generator = np.random.default_rng(0)
    texts = []
    for row, length in enumerate(lengths):
        distinct = num_distinct[row] if row < len(num_distinct) else None
        ids = generator.integers(0, shape.vocab_size, distinct or min(length, shape.max_tokens))
        ids = ids if distinct is None else generator.choice(ids, min(length, shape.max_tokens))
        texts.append(np.array([*before, *ids, *behind][: shape.max_tokens]))
    texts.sort(key=len, reverse=True)
    return pack(np.concatenate(texts), np.array([len(text) for text in texts]), pad_id=shape.pad_id)
