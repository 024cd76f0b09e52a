"""Losses under their names that hold a second encoder or give several terms. B texts, D dimension."""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.compat.losses.base import Loss, embed
from munjang.compat.losses.own import SpreadOut
from munjang.compat.similarity_functions import cos_sim
from munjang.objectives.base import Objective

Similarity = Callable[[Tensor, Tensor], Tensor]


class ContrastiveTensionLoss(nn.Module):
    """A copy of the encoder reads the first text, the encoder the second: equal texts have high dot products."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model2, self.model1 = model, deepcopy(model)  # the second is the one to keep

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of pairs; without labels, those with the same tokens are the positive ones."""
        first, second = sentence_features
        scores_B = (embed(self.model1, first) * embed(self.model2, second)).sum(1)
        if labels is None:
            pairs = zip(_rows(first), _rows(second), strict=True)
            labels = torch.tensor([torch.equal(one, other) for one, other in pairs], device=scores_B.device)
        return F.binary_cross_entropy_with_logits(scores_B, labels.type_as(scores_B), reduction="sum")

    def get_config_dict(self) -> dict[str, Any]:
        """Return the arguments, by names."""
        return {}

    @property
    def citation(self) -> str:
        """Return nothing, as every loss here."""
        return ""


class ContrastiveTensionLossInBatchNegatives(nn.Module):
    """Each text finds itself among the batch as the other encoder sees it, in both directions."""

    def __init__(self, model: Any, scale: float = 20.0, similarity_fct: Similarity = cos_sim) -> None:
        super().__init__()
        self.model2, self.model1 = model, deepcopy(model)
        self.similarity_fct = similarity_fct
        self.logit_scale = nn.Parameter(torch.tensor(float(scale)).log())

    def forward(self, sentence_features: Sequence[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """Return the loss of one column of texts."""
        column = sentence_features[0]
        vectors = embed(self.model1, dict(column)), embed(self.model2, dict(column))
        scores_BB = self.similarity_fct(*vectors) * self.logit_scale.exp()
        own_B = torch.arange(len(scores_BB), device=scores_BB.device)
        return (F.cross_entropy(scores_BB, own_B) + F.cross_entropy(scores_BB.t(), own_B)) / 2

    def get_config_dict(self) -> dict[str, Any]:
        """Return the arguments, by names."""
        return {"scale": self.logit_scale.exp().item(), "similarity_fct": getattr(self.similarity_fct, "__name__", "")}

    @property
    def citation(self) -> str:
        """Return nothing, as every loss here."""
        return ""


def spread_out(
    model: Any,
    similarity_fct: Similarity = cos_sim,
    mean_weight: float | None = 1.0,
    second_moment_weight: float | None = 1.0,
    aggregation: str = "mean",
) -> Objective:
    """Texts of a column lie like random directions: the mean and the second moment of their cosines."""
    if not mean_weight and not second_moment_weight:
        raise ValueError("At least one of mean_weight or second_moment_weight must be non-zero")
    if aggregation not in ("mean", "sum"):
        raise ValueError(f"aggregation must be 'mean' or 'sum', got '{aggregation}'")
    return SpreadOut(similarity_fct, mean_weight, second_moment_weight, aggregation)


class Terms(Loss):
    """A loss that returns its terms by their names, with their weights."""

    objective: SpreadOut

    def forward(  # type: ignore[override]
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        return self.compute_loss_from_embeddings([embed(self.model, column) for column in sentence_features])

    def compute_loss_from_embeddings(  # type: ignore[override]
        self, embeddings: Sequence[Tensor], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        terms = zip(("mean", "second_moment"), self.objective.parts(embeddings), strict=True)
        weighted = ((name, self.settings[f"{name}_weight"], term) for name, term in terms)
        return {f"gor_{name}": weight * term for name, weight, term in weighted if weight}


def _rows(features: dict[str, Tensor]) -> list[Tensor]:
    """Return the tokens of each text without padding."""
    ids_BL = features["input_ids"]
    mask_BL = features.get("attention_mask", torch.ones_like(ids_BL)).bool()
    return [ids[mask] for ids, mask in zip(ids_BL, mask_BL, strict=True)]
