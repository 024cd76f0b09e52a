"""Score a query's candidates by the model and by the data.    B queries, K candidates, C logits."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from munjang.errors import InputError
from munjang.objectives.base import Extras
from munjang.objectives.distances import full

# Applied to a cross-encoder's logit before it is compared
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"identity": lambda logits: logits, "sigmoid": torch.sigmoid}


def one_logit(outputs: Sequence[Tensor]) -> Tensor:
    """Return a cross-encoder's score of each pair: [B, K]."""
    for logits_BC in outputs:
        if logits_BC.shape[-1] != 1:
            raise InputError(
                f"This objective is for cross-encoders with 1 logit, not {logits_BC.shape[-1]}; "
                "take cross_entropy, or load the model with one label."
            )
    return full(torch.cat(list(outputs), dim=-1))


def relevance(extras: Extras, values_BK: Tensor) -> tuple[Tensor, Tensor]:
    """Return the data's score of each candidate, 0 where missing, and whether it is there: [B, K] each."""
    scores_BK = extras["scores"]
    size, num_candidates = values_BK.shape
    if scores_BK.shape != values_BK.shape:
        raise InputError(
            f"Scores of shape {tuple(scores_BK.shape)} for {num_candidates} candidates of {size} queries; "
            "each candidate needs one, NaN where it is missing."
        )
    is_there_BK = ~scores_BK.isnan()
    return scores_BK.nan_to_num(0).to(values_BK.dtype), is_there_BK


def margins(extras: Extras, values_BK: Tensor) -> tuple[Tensor, Tensor]:
    """Return the teacher's margins of the first candidate over the others, 0 where unknown, and whether they are known.

    The data may hold the score of each candidate, or these margins.
    """
    scores = extras["scores"]
    scores = scores[:, None] if scores.ndim == 1 else scores
    size, num_candidates = values_BK.shape
    if scores.shape == (size, num_candidates):
        scores = scores[:, :1] - scores[:, 1:]
    if scores.shape != (size, num_candidates - 1):
        raise InputError(
            f"Scores of shape {tuple(extras['scores'].shape)} for {num_candidates} candidates of {size} queries; "
            f"give the teacher's {num_candidates} scores of each query, or its {num_candidates - 1} margins."
        )
    return scores.nan_to_num(0).to(values_BK.dtype), ~scores.isnan()


def margin_loss(values_BK: Tensor, extras: Extras) -> Tensor:
    """Return the mean squared error of the margins between the first candidate and the others."""
    wanted_BJ, is_known_BJ = margins(extras, values_BK)
    errors_BJ = (values_BK[:, :1] - values_BK[:, 1:] - wanted_BJ) ** 2
    return errors_BJ.masked_fill(~is_known_BJ, 0).sum() / is_known_BJ.sum().clamp(min=1)
