"""Packed texts as a padded rectangle, for engines that need one (transformers, ONNX). Padding is counted.

B texts, L longest text, T tokens without padding.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from munjang.nn.encoder import TokenEncoder
from munjang.text.packing import Packed


@dataclass(frozen=True)
class Padded:
    """A padded batch, and the row and column of each real token in it."""

    ids_BL: Tensor
    mask_BL: Tensor  # 1 for a token that is attended to, 0 for padding
    types_BL: Tensor | None
    places: tuple[Tensor, Tensor]


class Rectangle(TokenEncoder):
    """A network that pads packed batches; `used` and `slots` count how much of its work was padding."""

    def __init__(self, pad_id: int) -> None:
        super().__init__()
        self.pad_id = pad_id
        self.used = self.slots = 0

    def pad(self, batch: Packed) -> Padded:
        """Pad a batch and count its slots."""
        device = batch.ids_T.device
        lengths_B = torch.from_numpy(batch.lengths).to(device)
        shape = (len(batch.lengths), max(batch.max_length, 1))
        text_of_T = torch.repeat_interleave(torch.arange(shape[0], device=device), lengths_B)
        place_T = torch.arange(batch.num_tokens, device=device) - (lengths_B.cumsum(0) - lengths_B)[text_of_T]
        ids_BL = torch.full(shape, self.pad_id, device=device)
        mask_BL = torch.zeros(shape, dtype=torch.long, device=device)
        ids_BL[text_of_T, place_T] = batch.ids_T
        seen_B = lengths_B if batch.seen is None else torch.from_numpy(batch.seen).to(device)
        mask_BL[text_of_T, place_T] = (place_T < seen_B[text_of_T]).long()
        types_BL = None
        if batch.types_T is not None:
            types_BL = torch.zeros_like(ids_BL)
            types_BL[text_of_T, place_T] = batch.types_T
        self.used, self.slots = self.used + batch.num_tokens, self.slots + ids_BL.numel()
        return Padded(ids_BL, mask_BL, types_BL, (text_of_T, place_T))

    @property
    def waste(self) -> float:
        """The share of padding in all computed slots."""
        return 1 - self.used / self.slots if self.slots else 0.0

    def facts(self) -> dict[str, object]:
        return {"padding": f"{self.waste:.1%} of what was computed so far"}
