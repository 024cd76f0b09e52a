"""The base of losses under their names: columns of features to vectors, and an objective of ours over them.

B examples, D dimension.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, distributed, nn

from munjang.compat.environment import fullname
from munjang.errors import InputError
from munjang.objectives.base import Objective

Build = Callable[..., Objective]


class Loss(nn.Module):
    """A loss over sentence vectors. `build` makes the objective; its arguments and defaults are those of theirs."""

    build: ClassVar[Build]
    model: Any

    def __init__(self, model: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.model = model
        self.settings = arguments_of(type(self), args, kwargs)
        for name, value in self.settings.items():
            if not isinstance(value, nn.Module):
                setattr(self, name, value)
        self.objective = type(self).build(model, **self.settings).to(model.device)

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of a batch: features for each column, and labels or scores."""
        return self.compute_loss_from_embeddings([embed(self.model, column) for column in sentence_features], labels)

    def compute_loss_from_embeddings(self, embeddings: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """Return the loss of vectors, one [B, D] for each column."""
        least, most = self.objective.num_texts
        if len(embeddings) < least or (most is not None and len(embeddings) > most):
            allowed = f"{least}" if least == most else f"at least {least}"
            raise ValueError(f"{type(self).__name__} expects {allowed} embeddings, got {len(embeddings)}")
        self._check_gathering()
        loss: Tensor = self.objective(embeddings, self.extras(embeddings, labels))
        return loss

    def _check_gathering(self) -> None:
        """Refuse to gather negatives. Checked at a batch: a loss is often made before the processes are joined."""
        count = distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1
        if count > 1 and self.settings.get("gather_across_devices"):
            raise InputError(
                f"{type(self).__name__}(gather_across_devices=True) is not covered by munjang.compat in a run of "
                f"{count} processes. Leave it out: negatives are then those of a process's own batch. Or train by "
                f"`torchrun --nproc-per-node {count} -m munjang train`, which gathers those of all processes."
            )

    def extras(self, embeddings: Sequence[Tensor], labels: Tensor | None) -> Mapping[str, Tensor]:
        """Return what the objective needs beside vectors."""
        size, device = len(embeddings[0]), embeddings[0].device
        found: dict[str, Tensor] = {}
        for name in self.objective.extras:
            if name == "texts":  # theirs looks at no text: all count as different
                found[name] = torch.arange(size * len(embeddings), device=device).view(size, -1)
            elif name == "guide":
                continue
            elif labels is None:
                raise ValueError(f"{type(self).__name__} needs labels or scores.")
            elif name == "labels":
                found[name] = self.checked(labels, size).to(device)
            elif name == "scores":
                flat = labels.reshape(-1) if labels.numel() == size else labels
                is_single = self.objective.num_texts == (2, 2)
                found[name] = (self.checked(labels, size) if is_single else flat).float().to(device)
            elif name == "teacher":
                found[name] = _teacher(labels, len(embeddings)).to(device)
        return found

    def checked(self, labels: Tensor, size: int) -> Tensor:
        """Return one label for each example."""
        if labels.numel() != size:
            raise ValueError(
                f"{type(self).__name__} expects {size} labels (one per example), but got {labels.numel()} labels "
                f"with shape {tuple(labels.shape)}."
            )
        return labels.reshape(-1)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the arguments, by names."""
        return {name: _named(value) for name, value in self.settings.items()}

    @property
    def citation(self) -> str:
        """Return nothing: the objectives name their papers."""
        return ""


def embed(model: Any, features: dict[str, Any]) -> Tensor:
    """Return the sentence vectors of features."""
    vectors: Tensor = model(features)["sentence_embedding"]
    return vectors


def arguments_of(kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call with their defaults; the first of `build`, the model, is left out."""
    signature = inspect.signature(kind.build)
    if kind.__dict__.get("older"):
        kwargs = {kind.older.get(name, name): value for name, value in kwargs.items()}
    bound = signature.bind(None, *args, **kwargs)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def named_like(names: Mapping[str, str], function: Any, what: str) -> str:
    """Return our name of one of their functions."""
    name = getattr(function, "__name__", str(function))
    if name not in names:
        raise InputError(f"{what}={name} is not covered by munjang.compat; choose from {', '.join(names)}.")
    return names[name]


def _teacher(labels: Tensor, count: int) -> Tensor:
    if labels.ndim == 3 and labels.shape[1] != count:
        raise ValueError(
            f"Number of label columns ({labels.shape[1]}) does not match number of input text columns ({count})."
        )
    if labels.ndim not in (2, 3):
        raise ValueError(f"Expected labels to be 2D or 3D; got {labels.ndim}D.")
    return labels if labels.ndim == 3 else labels[:, None].expand(-1, count, -1)


def _named(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return fullname(value)
    return getattr(value, "__name__", value)


def made(name: str, build: Build, base: type[Loss] = Loss, **more: Any) -> type[Loss]:
    """Make the class of a line of the table."""
    signature = inspect.signature(build)
    doc = f"{(build.__doc__ or name).strip()}"
    space = {"build": staticmethod(build), "__signature__": signature, "__doc__": doc, "__module__": __name__, **more}
    return type(name, (base,), space)
