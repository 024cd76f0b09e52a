"""Network: the interface of every model to the engine, the facades and training.

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
    """The interface of a model: packed, static, ONNX and transformers networks implement it."""

    is_trainable: bool  # False: it can only be used for inference

    @property
    def encoder(self) -> TokenEncoder:
        """The part that reads tokens."""

    @property
    def num_outputs(self) -> int:
        """The number of columns of a result: the dimension of a vector, or the labels of a pair."""

    @property
    def num_multiplied(self) -> int:
        """The number of weights that every token is multiplied with, a measure of work."""

    @property
    def num_parameters(self) -> int:
        """The number of weights."""

    def digest(self) -> str:
        """Hash the weights and modules."""

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Move the network to a device and prepare it for inference there."""

    def __call__(self, batch: Packed) -> Tensor:
        """Return one row per text or pair [B, R], in float32."""

    def modules(self) -> Iterator[nn.Module]:
        """Iterate over the submodules, as torch's modules do."""


class VectorNetwork(Network, Protocol):
    """A network whose rows are sentence vectors."""

    modes: tuple[str, ...]
    includes_prompt: bool  # whether pooling reads a prompt's tokens too

    @property
    def is_unit(self) -> bool:
        """True if the vectors have unit length."""

    @property
    def module_names(self) -> list[str]:
        """The names of the modules after pooling."""

    def raw(self, batch: Packed) -> Tensor:
        """Return the vectors before a final Normalize."""


def weights_digest(network: nn.Module) -> str:
    """Hash weights, modules and their `identity`, the settings that change a module's result.

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
