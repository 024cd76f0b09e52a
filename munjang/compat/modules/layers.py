"""Modules over sentence vectors: Dense, Normalize, LayerNorm, Dropout. `to_head` gives ours, over the same weights."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import torch.nn.functional as F
from torch import Tensor, nn

from munjang.compat.environment import fullname
from munjang.compat.modules.module import Features, Module
from munjang.nn import heads

SENTENCE = "sentence_embedding"


class Dense(Module):
    """A linear layer and an activation."""

    config_keys: ClassVar[list[str]] = [
        *("in_features", "out_features", "bias", "activation_function"),
        *("module_input_name", "module_output_name", "use_residual"),
    ]
    residual: nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        activation_function: Callable[[Tensor], Tensor] | str | None = nn.Tanh(),  # noqa: B008  # it has no state
        init_weight: Tensor | None = None,
        init_bias: Tensor | None = None,
        module_input_name: str = SENTENCE,
        module_output_name: str | None = None,
        use_residual: bool = False,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.bias = in_features, out_features, bias
        if isinstance(activation_function, str):  # of a config.json: one of a list, never imported
            activation_function = heads.activation(activation_function)
        self.activation_function: Any = nn.Identity() if activation_function is None else activation_function
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.module_input_name = module_input_name
        self.module_output_name = module_output_name or module_input_name
        self.use_residual = use_residual
        if use_residual and in_features != out_features:
            self.residual = nn.Linear(in_features, out_features, bias=False)
        if init_weight is not None:
            self.linear.weight = nn.Parameter(init_weight)
        if init_bias is not None and bias:
            self.linear.bias = nn.Parameter(init_bias)

    @classmethod
    def around(cls, head: heads.Dense) -> Self:
        """Put a layer of ours under their name."""
        linear = head.linear
        made = cls(1, 1, linear.bias is not None, head.activation, use_residual=head.has_residual)
        made.in_features, made.out_features, made.linear = linear.in_features, linear.out_features, linear
        if head.residual is not None:
            made.residual = head.residual
        return made

    def to_head(self) -> heads.Dense | None:
        """Return ours, or None where it can't be: over other features, or with a function of the caller's."""
        over = (self.module_input_name, self.module_output_name)
        if over != (SENTENCE, SENTENCE) or type(self.activation_function).__name__ not in heads.ACTIVATIONS:
            return None
        head = heads.Dense(1, 1, activation=self.activation_function, has_residual=self.use_residual)
        head.linear, head.residual = self.linear, getattr(self, "residual", None)
        return head

    def forward(self, features: Features, **kwargs: Any) -> Features:
        before = features[self.module_input_name]
        after = self.activation_function(self.linear(before))
        if self.use_residual:
            after = after + (before if self.in_features == self.out_features else self.residual(before))
        features[self.module_output_name] = after
        return features

    def get_embedding_dimension(self) -> int:
        """Return the width of what comes out."""
        return self.out_features

    def get_config_dict(self) -> dict[str, Any]:
        config = {**super().get_config_dict(), "activation_function": fullname(self.activation_function)}
        if not config["use_residual"]:
            del config["use_residual"]
        return config


class Normalize(Module):
    """Scale to length one."""

    config_keys: ClassVar[list[str]] = ["module_input_name", "module_output_name"]

    def __init__(self, module_input_name: str = SENTENCE, module_output_name: str | None = None) -> None:
        super().__init__()
        self.module_input_name = module_input_name
        self.module_output_name = module_output_name or module_input_name

    @classmethod
    def around(cls, head: heads.Normalize) -> Self:
        """Put a module of ours under their name."""
        return cls()

    def to_head(self) -> heads.Normalize | None:
        """Return ours, or None if it is over other features."""
        over = (self.module_input_name, self.module_output_name)
        return heads.Normalize() if over == (SENTENCE, SENTENCE) else None

    def forward(self, features: Features, **kwargs: Any) -> Features:
        features[self.module_output_name] = F.normalize(features[self.module_input_name], p=2, dim=-1)
        return features


class LayerNorm(Module):
    """A layer norm over sentence vectors."""

    config_keys: ClassVar[list[str]] = ["dimension"]

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.norm = nn.LayerNorm(dimension)

    @classmethod
    def around(cls, head: heads.LayerNorm) -> Self:
        """Put a module of ours under their name."""
        made = cls(head.norm.normalized_shape[0])
        made.norm = head.norm
        return made

    def to_head(self) -> heads.LayerNorm:
        """Return ours."""
        head = heads.LayerNorm(self.dimension)
        head.norm = self.norm
        return head

    def forward(self, features: Features, **kwargs: Any) -> Features:
        features[SENTENCE] = self.norm(features[SENTENCE])
        return features

    def get_embedding_dimension(self) -> int:
        """Return the width of what comes out."""
        return self.dimension


class Dropout(Module):
    """A dropout over sentence vectors."""

    config_keys: ClassVar[list[str]] = ["dropout"]

    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        self.dropout = dropout
        self.dropout_layer = nn.Dropout(dropout)

    @classmethod
    def around(cls, head: nn.Dropout) -> Self:
        """Put a module of ours under their name."""
        return cls(head.p)

    def to_head(self) -> nn.Dropout:
        """Return torch's."""
        return self.dropout_layer

    def forward(self, features: Features, **kwargs: Any) -> Features:
        features[SENTENCE] = self.dropout_layer(features[SENTENCE])
        return features


# What stands behind the pooling in a model of ours: the module under their name
AROUND: dict[type[nn.Module], Callable[[Any], Module]] = {
    heads.Dense: Dense.around,
    heads.Normalize: Normalize.around,
    heads.LayerNorm: LayerNorm.around,
    nn.Dropout: Dropout.around,
}
