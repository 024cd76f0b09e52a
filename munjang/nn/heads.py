"""Heads, which follow the encoder: modules over sentence vectors, and classification heads.

T tokens of the whole batch, B texts, D width, C labels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from munjang.errors import UnsupportedModel
from munjang.nn import pooling
from munjang.nn.norm import unit
from munjang.text.packing import Packed

# The only activations a checkpoint may name; nothing is ever imported by a path that a file gives.
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "Identity": nn.Identity,
    "Sigmoid": nn.Sigmoid,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
    "SiLU": nn.SiLU,
    "LeakyReLU": nn.LeakyReLU,
    "ELU": nn.ELU,
    "SELU": nn.SELU,
    "CELU": nn.CELU,
    "ReLU6": nn.ReLU6,
    "Mish": nn.Mish,
    "Softplus": nn.Softplus,
    "Softsign": nn.Softsign,
    "LogSigmoid": nn.LogSigmoid,
    "Hardtanh": nn.Hardtanh,
    "Hardsigmoid": nn.Hardsigmoid,
    "Hardswish": nn.Hardswish,
    "Softmax": lambda: nn.Softmax(dim=-1),
    "LogSoftmax": lambda: nn.LogSoftmax(dim=-1),
}


def activation(path: object) -> nn.Module:
    """Return the activation of a path in torch, such as `torch.nn.modules.activation.Sigmoid`."""
    parts = path.split(".") if isinstance(path, str) else [""]
    known = parts[:2] == ["torch", "nn"] or len(parts) == 1
    if not known or parts[-1] not in ACTIVATIONS:
        allowed = ", ".join(f"torch.nn.{name}" for name in sorted(ACTIVATIONS))
        raise UnsupportedModel(
            f"The checkpoint names the activation {path!r}, which is not on the list of safe ones: {allowed}."
        )
    return ACTIVATIONS[parts[-1]]()


def path_of(module: Callable[[Tensor], Tensor]) -> str:
    """Return the path under which sentence-transformers saves an activation."""
    return f"{type(module).__module__}.{type(module).__qualname__}"


class Dense(nn.Module):
    """A linear layer and an activation over sentence vectors, with an optional residual."""

    def __init__(
        self,
        width_in: int,
        width_out: int,
        has_bias: bool = True,
        activation: nn.Module | None = None,
        has_residual: bool = False,
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(width_in, width_out, bias=has_bias)
        self.activation = nn.Tanh() if activation is None else activation
        self.has_residual = has_residual
        self.residual = nn.Linear(width_in, width_out, bias=False) if has_residual and width_in != width_out else None

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.has_residual,)

    def forward(self, vectors_BD: Tensor) -> Tensor:
        out: Tensor = self.activation(self.linear(vectors_BD))
        if self.has_residual:
            out = out + (vectors_BD if self.residual is None else self.residual(vectors_BD))
        return out


class Normalize(nn.Module):
    """A module that scales vectors to unit length."""

    def forward(self, vectors_BD: Tensor) -> Tensor:
        return unit(vectors_BD)


class LayerNorm(nn.Module):
    """A layer norm over sentence vectors."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, vectors_BD: Tensor) -> Tensor:
        out: Tensor = self.norm(vectors_BD)
        return out


@dataclass(frozen=True)
class HeadShape:
    """The shape of a classification head: pooling, dense, activation, (norm), projection, and dropout."""

    width: int
    num_labels: int
    activation: str  # of ACTIVATIONS
    dropout_in: float = 0.0
    dropout_out: float = 0.0
    pooling: str = "cls"
    has_dense_bias: bool = True
    has_norm: bool = False
    has_norm_bias: bool = True
    norm_eps: float = 1e-5


class ClassificationHead(nn.Module):
    """A head from token vectors to one row of logits per text."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.shape = shape
        self.dense = nn.Linear(shape.width, shape.width, bias=shape.has_dense_bias)
        self.activation = activation(shape.activation)
        self.norm = nn.LayerNorm(shape.width, shape.norm_eps, bias=shape.has_norm_bias) if shape.has_norm else None
        self.out = nn.Linear(shape.width, shape.num_labels)
        self.dropout_in, self.dropout_out = nn.Dropout(shape.dropout_in), nn.Dropout(shape.dropout_out)

    @property
    def num_labels(self) -> int:
        """The number of columns of the logits."""
        return self.shape.num_labels

    @property
    def identity(self) -> tuple[object, ...]:
        """The settings that change the result, apart from the weights."""
        return (self.shape.pooling,)

    def forward(self, tokens_TD: Tensor, batch: Packed) -> Tensor:
        pooled_BD = pooling.pool(tokens_TD, batch, (self.shape.pooling,)).to(self.dense.weight.dtype)
        hidden_BD = self.activation(self.dense(self.dropout_in(pooled_BD)))
        if self.norm is not None:
            hidden_BD = self.norm(hidden_BD)
        logits_BC: Tensor = self.out(self.dropout_out(hidden_BD))
        return logits_BC


def scale_of(function: Callable[[Tensor], Tensor]) -> str:
    """Return the scale of an activation's scores: `sigmoid` (0 to 1), `logit` (any number), its name or `custom`."""
    name = type(function).__name__.lower() if isinstance(function, nn.Module) else "custom"
    return "logit" if name == "identity" else name


def check_weight(what: str, tensor: Tensor, is_float: bool = True) -> None:
    """Refuse weights that would turn vectors into NaN or noise. `is_float` False: integers are allowed."""
    if is_float and (not tensor.is_floating_point() or tensor.layout is not torch.strided):
        raise UnsupportedModel(f"{what} is stored as {tensor.dtype}, {tensor.layout}; get the model in plain floats.")
    if tensor.is_floating_point():
        values = tensor.float() if tensor.dtype is torch.float64 else tensor  # as it will be computed
        if not bool(torch.isfinite(values.sum(dtype=torch.float64))):
            bad = int((~torch.isfinite(values)).sum())
            raise UnsupportedModel(
                f"{what} holds {bad} NaN or infinite values; the file is damaged, or its training diverged."
            )
