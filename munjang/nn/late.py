"""The network of late interaction: packed batch to one vector per token.

T tokens of the whole batch, D dimension.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from munjang.nn.encoder import TokenEncoder
from munjang.nn.heads import Dense, Normalize
from munjang.nn.network import EncoderNetwork
from munjang.nn.prepacked import prepack_exact
from munjang.text.packing import Packed


class TokenNetwork(EncoderNetwork):
    """An encoder and modules over its token vectors: a projection, then unit length; in fp32."""

    def __init__(self, encoder: TokenEncoder, tail: Sequence[nn.Module]) -> None:
        super().__init__(encoder)
        self.tail = nn.ModuleList(tail)

    def forward(self, batch: Packed) -> Tensor:
        """Return the token vectors [T, D]."""
        return self.project(self.encoder(batch))

    def project(self, states_TD: Tensor) -> Tensor:
        """Run the modules behind the encoder."""
        vectors_TD = states_TD.float()
        for module in self.tail:
            vectors_TD = module(vectors_TD)
        return vectors_TD

    @property
    def is_unit(self) -> bool:
        """True if token vectors have unit length."""
        return bool(self.tail) and isinstance(self.tail[-1], Normalize)

    @property
    def num_outputs(self) -> int:
        """The dimension of a token vector."""
        width = self.encoder.width
        for module in self.tail:
            width = module.linear.out_features if isinstance(module, Dense) else width
        return width

    @property
    def module_names(self) -> list[str]:
        """The names of the modules behind the encoder."""
        return [type(module).__name__ for module in self.tail]

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Move the encoder to a device in `dtype`, the modules behind it in fp32."""
        self.eval().place_encoder(device, dtype)
        self.tail.to(device, torch.float32)
        prepack_exact(self.tail)
        return self
