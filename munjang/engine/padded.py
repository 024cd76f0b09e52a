"""Encode in padded batches, as other libraries do: only to measure what padding costs.    T tokens, B texts, D width.

Nothing else may use this. The arithmetic is ours, so the difference to `BiEncoder.encode` is that of the batches.
"""

import numpy as np
import torch
from torch import Tensor

from munjang.engine.run import Executor
from munjang.nn.network import SentenceNetwork
from munjang.text.flat import by_length, cumulative, gather
from munjang.text.packing import Packed, pack
from munjang.text.tokenizer import Tokenizer
from munjang.types import Floats

BATCH_SIZE = 32  # sentence-transformers' default


def padded(batch: Packed) -> tuple[Packed, Tensor]:
    """Return a batch in which all texts have the length of the longest, and where its real tokens stand.

    The padding is computed like a token; no token sees it.
    """
    num_texts, longest = len(batch.lengths), batch.max_length
    lengths = np.full(num_texts, longest, np.int64)
    text_of_T = np.repeat(np.arange(num_texts), batch.lengths)
    places_T = torch.from_numpy(text_of_T * longest + batch.positions_T.numpy())
    ids = torch.zeros(num_texts * longest, dtype=torch.int64)
    ids[places_T] = batch.ids_T
    return pack(ids.numpy(), lengths, seen=batch.lengths), places_T


def encode_padded(
    network: SentenceNetwork,
    executor: Executor,
    tokenizer: Tokenizer,
    texts: list[str],
    batch_size: int = BATCH_SIZE,
    is_sorted: bool = False,
) -> Floats:
    """Encode texts in the order in which they come, or those of similar length together (smart batching)."""
    tokens = tokenizer(texts)
    order = by_length(tokens.lengths) if is_sorted else np.arange(len(texts))
    starts = cumulative(tokens.lengths)[:-1]

    def compute() -> Tensor:
        parts = []
        for first in range(0, len(texts), batch_size):
            rows = order[first : first + batch_size]
            lengths = tokens.lengths[rows]
            real = pack(gather(tokens.ids, starts, rows, lengths), lengths)
            batch, places_T = padded(real)
            vectors_TD = network.encoder(batch.to(executor.device))[places_T.to(executor.device)]
            parts.append(network.head(vectors_TD, real.to(executor.device)).float().cpu())
        return torch.cat(parts)

    vectors_BD = np.empty((len(texts), network.num_outputs), np.float32)
    vectors_BD[order] = executor.call(compute).numpy()
    return vectors_BD
