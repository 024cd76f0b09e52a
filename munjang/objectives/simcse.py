"""SimCSE: a text has to find itself, seen through other dropout, among the texts of the batch."""

from collections.abc import Sequence

from torch import Tensor

from munjang.objectives.base import Extras
from munjang.objectives.blocks import BLOCK_ROWS
from munjang.objectives.in_batch import InBatch


class SimCSE(InBatch):
    """In-batch negatives where the positive is the same text, passed through the network a second time."""

    num_texts = (1, 1)
    passes = 2

    def __init__(self, temperature: float = 0.05, block_rows: int = BLOCK_ROWS) -> None:
        super().__init__(temperature=temperature, block_rows=block_rows)

    def forward(self, outputs: Sequence[Tensor], extras: Extras) -> Tensor:
        return super().forward(outputs, {"texts": extras["texts"][:, [0, 0]]})
