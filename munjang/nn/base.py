"""Network: what every model is to the engine, the facades and training, whoever computes it.

B texts or pairs, R columns of a result.
"""

import hashlib
from collections.abc import Iterator
from typing import Protocol, Self

import torch
from torch import Tensor, nn

from munjang.nn.encoder import TokenEncoder
from munjang.text.packing import Packed


class Network(Protocol):
    """What the engine, the facades and training ask of a model; packed, static, ONNX and transformers ones have it."""

    is_trainable: bool  # whether it can learn here

    @property
    def encoder(self) -> TokenEncoder:
        """The part that reads tokens."""

    @property
    def num_outputs(self) -> int:
        """Columns of a result: components of a sentence vector, or labels of a pair."""

    @property
    def num_multiplied(self) -> int:
        """Weights that every token is multiplied with: how much work a batch is."""

    @property
    def num_parameters(self) -> int:
        """All weights."""

    def digest(self) -> str:
        """Hash the weights and modules."""

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Place the network on a device, in the form in which it is computed there."""

    def __call__(self, batch: Packed) -> Tensor:
        """Return one row per text or pair [B, R], in float32."""

    def modules(self) -> Iterator[nn.Module]:
        """Iterate over the parts, as torch's modules do."""


class VectorNetwork(Network, Protocol):
    """A network whose rows are sentence vectors."""

    modes: tuple[str, ...]
    includes_prompt: bool  # whether pooling reads a prompt's tokens too

    @property
    def is_unit(self) -> bool:
        """Whether the vectors have unit length."""

    @property
    def module_names(self) -> list[str]:
        """Modules behind the pooling, by name."""

    def raw(self, batch: Packed) -> Tensor:
        """Return the vectors without a Normalize at the end."""


def weights_digest(network: nn.Module) -> str:
    """Hash weights, modules and what else decides a module's result, which its `identity` says.

    Weights count in bfloat16, so that an index made on a GPU fits the same model on a CPU, in float32.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().to("cpu", torch.bfloat16).contiguous().view(torch.int16).numpy().data)
    for module in network.modules():
        kind = type(module)
        identity: tuple[object, ...] = getattr(module, "identity", ())
        digest.update(repr((f"{kind.__module__}.{kind.__qualname__}", *identity)).encode())
    return digest.hexdigest()


def num_multiplied(network: nn.Module) -> int:
    """Count the weights of all linear layers, each of which multiplies every token."""
    return sum(module.weight.numel() for module in network.modules() if isinstance(module, nn.Linear))
