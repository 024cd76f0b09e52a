"""Token vectors of a whole batch, text by text: what objectives of late interaction see.

K sequences of each example, T tokens of all micro-batches, D dimension.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from munjang.text.packing import Packed


def tokens_by_text(
    own_TD: Tensor, parts: Sequence[Packed], order_of: Tensor, num_sequences: int, dropped: Sequence[Tensor]
) -> list[list[Tensor]]:
    """Split the token vectors of all micro-batches into a list for each column, one matrix a text.

    `order_of`: positions of the batch's sequences in the micro-batches; `dropped`: tokens without a vector, of the
    first column and of the others.
    """
    lengths = [length for part in parts for length in part.lengths.tolist()]
    vectors, ids = torch.split(own_TD, lengths), torch.split(torch.cat([part.ids_T for part in parts]), lengths)
    order, size = order_of.tolist(), len(order_of) // num_sequences
    columns = []
    for column in range(num_sequences):
        places = order[column * size : (column + 1) * size]
        without = dropped[min(column, 1)]
        columns.append([_kept(vectors[place], ids[place].to(own_TD.device), without) for place in places])
    return columns


def _kept(vectors_TD: Tensor, ids_T: Tensor, without: Tensor) -> Tensor:
    return vectors_TD[~torch.isin(ids_T, without.to(ids_T.device))] if len(without) else vectors_TD
