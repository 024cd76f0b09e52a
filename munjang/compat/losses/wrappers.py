"""Losses around losses: Matryoshka, adaptive layers, and both."""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.compat.losses.base import embed

Compute = Callable[[Sequence[Tensor], Any], Tensor]


@contextmanager
def computed_by(loss: Any, compute: Callable[[Compute, Sequence[Tensor], Any], Tensor]) -> Iterator[None]:
    """Replace what a loss computes from vectors, inside the block."""
    before: Compute = loss.compute_loss_from_embeddings
    object.__setattr__(loss, "compute_loss_from_embeddings", lambda rows, labels: compute(before, rows, labels))
    try:
        yield
    finally:
        del loss.__dict__["compute_loss_from_embeddings"]


class MatryoshkaLoss(nn.Module):
    """The loss over vectors cut to each of several dimensions, added up."""

    def __init__(
        self,
        model: Any,
        loss: Any,
        matryoshka_dims: Sequence[int],
        matryoshka_weights: Sequence[float] | None = None,
        n_dims_per_step: int = -1,
    ) -> None:
        super().__init__()
        self.model, self.loss, self.n_dims_per_step = model, loss, n_dims_per_step
        if not matryoshka_dims:
            raise ValueError("You must provide at least one dimension in matryoshka_dims.")
        if any(dim <= 0 for dim in matryoshka_dims):
            raise ValueError("All dimensions passed to a matryoshka loss must be > 0.")
        weights = [1] * len(matryoshka_dims) if matryoshka_weights is None else matryoshka_weights
        if len(weights) != len(matryoshka_dims):
            raise ValueError("matryoshka_weights must be the same length as matryoshka_dims.")
        width = model.get_embedding_dimension()
        if width is not None and any(dim > width for dim in matryoshka_dims):
            raise ValueError(f"Dimensions in matryoshka_dims cannot exceed the model's embedding dimension of {width}.")
        pairs = sorted(zip(matryoshka_dims, weights, strict=True), reverse=True)
        self.matryoshka_dims = tuple(dim for dim, _ in pairs)
        self.matryoshka_weights = tuple(weight for _, weight in pairs)
        self.uses_gradient_cache = getattr(loss, "uses_gradient_cache", False)

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        with computed_by(self.loss, self._over_dims):
            found: Tensor = self.loss(sentence_features, labels)
        return found

    def compute_loss_from_embeddings(self, embeddings: Sequence[Tensor], labels: Tensor | None) -> Tensor:
        """Return the loss of vectors."""
        return self._over_dims(self.loss.compute_loss_from_embeddings, embeddings, labels)

    def _over_dims(self, compute: Compute, embeddings: Sequence[Tensor], labels: Any) -> Tensor:
        places: Sequence[int] = range(len(self.matryoshka_dims))
        if 0 < self.n_dims_per_step < len(places):
            places = random.sample(places, self.n_dims_per_step)
        losses = []
        for place in places:
            dim = self.matryoshka_dims[place]
            cut = [F.normalize(rows[..., :dim], dim=-1) for rows in embeddings]
            losses.append(self.matryoshka_weights[place] * compute(cut, self._cut_like_vectors(labels, dim)))
        return torch.stack(losses).sum()

    def _cut_like_vectors(self, labels: Any, dim: int) -> Any:
        """Cut labels that are a teacher's vectors, as wide as the model's own; others stay as they are."""
        is_wide = isinstance(labels, Tensor) and labels.ndim in (2, 3)
        return labels[..., :dim] if is_wide and labels.shape[-1] == self.model.get_embedding_dimension() else labels

    def get_config_dict(self) -> dict[str, Any]:
        """Return the arguments."""
        return {
            "loss": type(self.loss).__name__,
            "matryoshka_dims": self.matryoshka_dims,
            "matryoshka_weights": self.matryoshka_weights,
            "n_dims_per_step": self.n_dims_per_step,
        }

    @property
    def citation(self) -> str:
        """Return nothing: the objectives name their papers."""
        return ""


class AdaptiveLayerLoss(nn.Module):
    """The loss over the last layer and over earlier ones, which also learn the last one's distribution."""

    def __init__(
        self,
        model: Any,
        loss: Any,
        n_layers_per_step: int = 1,
        last_layer_weight: float = 1.0,
        prior_layers_weight: float = 1.0,
        kl_div_weight: float = 1.0,
        kl_temperature: float = 0.3,
        layer_weighting: str | Callable[[int], float] = "uniform",
    ) -> None:
        super().__init__()
        self.model, self.loss, self.n_layers_per_step = model, loss, n_layers_per_step
        self.last_layer_weight, self.prior_layers_weight = last_layer_weight, prior_layers_weight
        self.kl_div_weight, self.kl_temperature = kl_div_weight, kl_temperature
        self.layer_weighting = layer_weighting
        if not callable(layer_weighting) and layer_weighting not in ("uniform", "log", "linear"):
            raise ValueError(
                f'layer_weighting must be "uniform", "log", "linear", or a callable, but got {layer_weighting!r}.'
            )

    def get_layer_weight(self, layer: int) -> float:
        """Return the weight of a layer."""
        if callable(self.layer_weighting):
            return self.layer_weighting(layer)
        return {"uniform": 1.0, "log": 1 / (1 + math.log(1 + layer)), "linear": 1 / (1 + layer)}[self.layer_weighting]

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        last, layers = self._by_layer(list(sentence_features))
        loss: Tensor = self.loss.compute_loss_from_embeddings(last, labels) * self.last_layer_weight
        wanted = (torch.cat(last) / self.kl_temperature).softmax(-1).detach() if self.kl_temperature > 0 else None
        places: Sequence[int] = range(len(layers))
        if 0 < self.n_layers_per_step < len(places):
            places = random.sample(places, self.n_layers_per_step)
        for place in places:
            own = self.loss.compute_loss_from_embeddings(layers[place], labels)
            loss = loss + own * self.get_layer_weight(place) / len(places) * self.prior_layers_weight
            if wanted is not None:
                found = (torch.cat(layers[place]) / self.kl_temperature).log_softmax(-1)
                distance = F.kl_div(found, wanted, reduction="batchmean")
                loss = loss + distance * self.kl_temperature * self.kl_div_weight
        return loss

    def _by_layer(self, columns: list[dict[str, Any]]) -> tuple[list[Tensor], list[list[Tensor]]]:
        """Return the vectors of each column after the last layer, and after each layer before it."""
        first, *rest = self.model
        config = first.auto_model.config
        before, config.output_hidden_states = getattr(config, "output_hidden_states", False), True
        try:
            features = [first(dict(column)) for column in columns]
        finally:
            config.output_hidden_states = before
        follow = nn.Sequential(*rest)
        last = [embed(follow, dict(column)) for column in features]
        count = len(features[0]["all_layer_embeddings"]) - 1
        layers = [
            [
                embed(follow, {**column, "token_embeddings": column["all_layer_embeddings"][place]})
                for column in features
            ]
            for place in range(count)
        ]
        return last, layers

    def get_config_dict(self) -> dict[str, Any]:
        """Return the arguments."""
        names = ("n_layers_per_step", "last_layer_weight", "prior_layers_weight", "kl_div_weight", "kl_temperature")
        weighting = getattr(self.layer_weighting, "__name__", self.layer_weighting)
        found = {name: getattr(self, name) for name in names}
        return {"loss": type(self.loss).__name__, **found, "layer_weighting": weighting}

    @property
    def citation(self) -> str:
        """Return nothing: the objectives name their papers."""
        return ""


class Matryoshka2dLoss(AdaptiveLayerLoss):
    """Matryoshka over adaptive layers."""

    def __init__(
        self,
        model: Any,
        loss: Any,
        matryoshka_dims: Sequence[int],
        matryoshka_weights: Sequence[float] | None = None,
        n_layers_per_step: int = 1,
        n_dims_per_step: int = 1,
        last_layer_weight: float = 1.0,
        prior_layers_weight: float = 1.0,
        kl_div_weight: float = 1.0,
        kl_temperature: float = 0.3,
        layer_weighting: str | Callable[[int], float] = "uniform",
    ) -> None:
        cut = MatryoshkaLoss(model, loss, matryoshka_dims, matryoshka_weights, n_dims_per_step)
        weights = (last_layer_weight, prior_layers_weight, kl_div_weight, kl_temperature, layer_weighting)
        super().__init__(model, cut, n_layers_per_step, *weights)

    def get_config_dict(self) -> dict[str, Any]:
        return {**super().get_config_dict(), **self.loss.get_config_dict()}
