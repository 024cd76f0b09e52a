"""The network of late interaction: packed batch to one vector per token.

T tokens of the whole batch, D dimension.
"""

from torch import Tensor

from munjang.nn.network import TailedNetwork
from munjang.text.packing import Packed


class TokenNetwork(TailedNetwork):
    """An encoder and modules over its token vectors: a projection, then unit length; in fp32."""

    def forward(self, batch: Packed) -> Tensor:
        """Return the token vectors [T, D]."""
        return self.project(self.encoder(batch))

    def project(self, states_TD: Tensor) -> Tensor:
        """Run the modules behind the encoder."""
        vectors_TD = states_TD.float()
        for module in self.tail:
            vectors_TD = module(vectors_TD)
        return vectors_TD
