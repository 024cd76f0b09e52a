"""Every objective once more, example by example and straight from its formula.

A function takes the options, the network's outputs, the extras and the objective's parameters by name.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.objectives.naive_logits import (
    cross_bce,
    cross_entropy,
    cross_in_batch,
    cross_margin_mse,
    cross_mse,
    lambda_loss,
    listnet,
    ranknet,
)
from tests.objectives.naive_parts import Naive, Options, mean
from tests.objectives.naive_tokens import denoising, masked
from tests.objectives.naive_vectors import (
    angle_of,
    batch_triplets,
    classification,
    contrastive,
    cosine,
    embedding_cosine,
    embedding_mse,
    in_batch,
    in_batch_kl,
    kl,
    margin_mse,
    online_contrastive,
    ranked,
    regression,
    simcse,
    triplet,
)

NAIVE: dict[str, Naive] = {
    "classification": classification,
    "regression": regression,
    "triplet": triplet,
    "batch_all_triplet": batch_triplets("all"),
    "batch_hard_triplet": batch_triplets("hard"),
    "batch_semi_hard_triplet": batch_triplets("semi-hard"),
    "in_batch": in_batch,
    "contrastive": contrastive,
    "online_contrastive": online_contrastive,
    "cosent": ranked(cosine),
    "angle": ranked(angle_of),
    "embedding_mse": embedding_mse,
    "embedding_cosine": embedding_cosine,
    "in_batch_kl": in_batch_kl,
    "margin_mse": margin_mse,
    "kl": kl,
    "simcse": simcse,
    "denoising": denoising,
    "masked": masked,
    "cross_bce": cross_bce,
    "cross_entropy": cross_entropy,
    "cross_mse": cross_mse,
    "cross_margin_mse": cross_margin_mse,
    "cross_in_batch": cross_in_batch,
    "listnet": listnet,
    "lambda_loss": lambda_loss,
    "ranknet": ranknet,
}


def wrapped(wrapper: str, given: Options, inner: Naive) -> Naive:
    """The same of a wrapper around an objective; parameters are named as inside it."""

    def matryoshka(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        total, dims = 0, given["dims"]
        for dim, weight in zip(dims, given.get("weights", [1.0] * len(dims)), strict=True):
            cut = []
            for vectors in outputs:
                kept = torch.stack(
                    [row[:dim] / (row[:dim].norm() if given.get("is_normalized", True) else 1) for row in vectors]
                )
                rest = kept.new_zeros(len(kept), vectors.shape[1] - dim)
                cut.append(torch.cat([kept, rest], dim=1) if parameters else kept)
            teacher = {
                key: extras[key][:, :, :dim]
                for key in extras
                if key == "teacher" and inner in (embedding_mse, embedding_cosine) and not parameters
            }
            total = total + weight * inner(options, cut, {**extras, **teacher}, parameters)
        return total

    def adaptive_layers(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        losses = [
            inner(options, [column[:, layer] for column in outputs], extras, parameters)
            for layer in range(outputs[0].shape[1])
        ]
        divergences = []
        for column in outputs:
            for *earlier, last in column:
                wanted = (last.detach() / 0.3).softmax(0)
                divergences += [(wanted * (wanted.log() - (each / 0.3).softmax(0).log())).sum() for each in earlier]
        far = given.get("divergence_weight", 1.0) * 0.3 * mean(divergences, outputs[0])
        return losses[-1] + given.get("earlier_weight", 1.0) * mean(losses[:-1], outputs[0]) + far

    return {"matryoshka": matryoshka, "adaptive_layers": adaptive_layers}[wrapper]
