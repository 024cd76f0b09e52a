"""Losses over sentence vectors: a line each, theirs to ours. To add one: a function, and a line in LOSSES.

The arguments of a function are those of their loss, with their defaults; it returns the objective of ours.
"""

from typing import Any

from torch import Tensor, nn

from munjang.compat.losses.base import Build, Loss, made, named_like
from munjang.compat.losses.distances import (
    BatchHardTripletLossDistanceFunction,
    SiameseDistanceMetric,
    TripletDistanceMetric,
    of_all,
)
from munjang.compat.losses.own import (
    Concatenated,
    CosineScores,
    EmbeddingDistance,
    MegaBatchMargin,
    SoftMarginTriplet,
)
from munjang.compat.similarity_functions import cos_sim, pairwise_angle_sim, pairwise_cos_sim, pairwise_dot_score
from munjang.objectives.base import Objective
from munjang.objectives.batch_triplets import BatchAllTriplet, BatchHardTriplet, BatchSemiHardTriplet
from munjang.objectives.contrastive import Contrastive
from munjang.objectives.cosent import CoSENT
from munjang.objectives.in_batch import InBatch
from munjang.objectives.kl import KL
from munjang.objectives.margin_mse import MarginMSE
from munjang.objectives.online_contrastive import OnlineContrastive
from munjang.objectives.regression import Regression
from munjang.objectives.triplet import Triplet

SIMILARITY_OF = {"cos_sim": "cosine", "pytorch_cos_sim": "cosine", "dot_score": "dot"}
CONTRAST_OF = {"query_to_query": "anchors", "doc_to_query": "reverse", "doc_to_doc": "candidates"}
HARDNESS_OF = {"in_batch_negatives": "others", "hard_negatives": "own", "all_negatives": "all"}
EUCLIDEAN_OF_ALL = BatchHardTripletLossDistanceFunction.euclidean_distance


def ranking(
    model: Any,
    scale: float = 20.0,
    similarity_fct: Any = cos_sim,
    gather_across_devices: bool = False,
    directions: tuple[str, ...] = ("query_to_doc",),
    partition_mode: str = "joint",
    hardness_mode: str | None = None,
    hardness_strength: float = 0.0,
) -> Objective:
    """Each anchor finds its positive among the batch: in_batch."""
    if not scale > 0:
        raise ValueError("Scale must be a positive value.")
    if not directions:
        raise ValueError("At least one direction must be specified.")
    known = {"query_to_doc", *CONTRAST_OF}
    if unknown := set(directions) - known:
        raise ValueError(f"Invalid directions: {unknown}. Valid: {known}")
    if "query_to_doc" not in directions:
        raise ValueError("'query_to_doc' direction is required (contains the positive pair).")
    if partition_mode not in ("joint", "per_direction"):
        raise ValueError(f"partition_mode must be 'joint' or 'per_direction', got {partition_mode}")
    is_split = partition_mode == "per_direction"
    if is_split and set(directions) & {"query_to_query", "doc_to_doc"}:
        raise ValueError(
            "partition_mode='per_direction' requires every direction's candidate pool to include the positive pair; "
            "query_to_query and doc_to_doc have none. Use partition_mode='joint' instead."
        )
    if hardness_mode is not None and hardness_mode not in HARDNESS_OF:
        raise ValueError(f"hardness_mode must be one of {[None, *HARDNESS_OF]}, got {hardness_mode!r}")
    if hardness_strength < 0:
        raise ValueError("hardness_strength must be non-negative.")
    return InBatch(
        temperature=1 / scale,
        is_symmetric=is_split and "doc_to_query" in directions,
        similarity=named_like(SIMILARITY_OF, similarity_fct, "similarity_fct"),
        contrasts="" if is_split else ",".join(CONTRAST_OF[name] for name in directions if name in CONTRAST_OF),
        hardness=0.0 if hardness_mode is None else hardness_strength,
        hardness_of=HARDNESS_OF.get(hardness_mode or "", "others"),
        keeps_duplicates=True,
    )


def symmetric_ranking(
    model: Any, scale: float = 20.0, similarity_fct: Any = cos_sim, gather_across_devices: bool = False
) -> Objective:
    """Anchors find positives, and positives anchors: in_batch, symmetric."""
    directions = ("query_to_doc", "doc_to_query")
    return ranking(model, scale, similarity_fct, gather_across_devices, directions, "per_direction")


def guided(
    model: Any,
    guide: Any,
    temperature: float = 0.01,
    margin_strategy: str = "absolute",
    margin: float = 0.0,
    contrast_anchors: bool = True,
    contrast_positives: bool = True,
    gather_across_devices: bool = False,
) -> Objective:
    """In-batch negatives that a second model does not take for positives: in_batch with guide_margin."""
    if margin_strategy not in ("absolute", "relative"):
        raise ValueError("margin_strategy must be 'absolute' or 'relative'.")
    wanted = {"anchors": contrast_anchors, "positives": contrast_positives}
    return InBatch(
        temperature=temperature,
        guide_margin=margin,
        contrasts=",".join(name for name, is_in in wanted.items() if is_in),
        is_margin_relative=margin_strategy == "relative",
        keeps_duplicates=True,
    )


def cosine_similarity(
    model: Any, loss_fct: nn.Module | None = None, cos_score_transformation: nn.Module | None = None
) -> Objective:
    """Cosines against scores: regression."""
    is_plain = loss_fct is None or (type(loss_fct) is nn.MSELoss and loss_fct.reduction == "mean")
    if is_plain and (cos_score_transformation is None or type(cos_score_transformation) is nn.Identity):
        return Regression()
    return CosineScores(loss_fct or nn.MSELoss(), cos_score_transformation or nn.Identity())


def cosent(model: Any, scale: float = 20.0, similarity_fct: Any = pairwise_cos_sim) -> Objective:
    """Pairs with higher scores have higher similarities: cosent."""
    objective = CoSENT(scale)
    objective.similarity = similarity_fct  # type: ignore[method-assign]
    return objective


def angle(model: Any, scale: float = 20.0) -> Objective:
    """CoSENT over angles of complex vectors: angle."""
    return cosent(model, scale, pairwise_angle_sim)


def contrastive(
    model: Any,
    distance_metric: Any = SiameseDistanceMetric.COSINE_DISTANCE,
    margin: float = 0.5,
    size_average: bool = True,
) -> Objective:
    """Similar pairs near, others beyond a margin: contrastive."""
    objective = Contrastive(margin)
    objective.distance = distance_metric
    return objective if size_average else Summed(objective)


class Summed(Objective):
    """The sum in the place of the mean."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective, self.extras = objective, objective.extras

    def forward(self, outputs: Any, extras: Any) -> Tensor:
        loss: Tensor = self.objective(outputs, extras) * len(outputs[0])
        return loss


def online_contrastive(
    model: Any, distance_metric: Any = SiameseDistanceMetric.COSINE_DISTANCE, margin: float = 0.5
) -> Objective:
    """The hard pairs of the batch: online_contrastive."""
    objective = OnlineContrastive(margin)
    objective.distance = distance_metric
    return objective


def triplet(model: Any, distance_metric: Any = TripletDistanceMetric.EUCLIDEAN, triplet_margin: float = 5) -> Objective:
    """The positive nearer than the negative, by a margin: triplet."""
    objective = Triplet(triplet_margin)
    objective.distance = distance_metric
    return objective


def batch_all(model: Any, distance_metric: Any = EUCLIDEAN_OF_ALL, margin: float = 5) -> Objective:
    """All triplets of the batch: batch_all_triplet."""
    objective = BatchAllTriplet(margin)
    objective.distance = of_all(distance_metric)
    return objective


def batch_hard(model: Any, distance_metric: Any = EUCLIDEAN_OF_ALL, margin: float = 5) -> Objective:
    """The hardest triplet of each anchor: batch_hard_triplet."""
    objective = BatchHardTriplet(margin)
    objective.distance = of_all(distance_metric)
    return objective


def batch_hard_soft(model: Any, distance_metric: Any = EUCLIDEAN_OF_ALL) -> Objective:
    """The hardest triplet of each anchor, without a margin."""
    objective = SoftMarginTriplet()
    objective.distance = of_all(distance_metric)
    return objective


def batch_semi_hard(model: Any, distance_metric: Any = EUCLIDEAN_OF_ALL, margin: float = 5) -> Objective:
    """The semi-hard triplets of the batch: batch_semi_hard_triplet."""
    objective = BatchSemiHardTriplet(margin)
    objective.distance = of_all(distance_metric)
    return objective


def softmax(
    model: Any,
    embedding_dimension: int,
    num_labels: int,
    concatenation_sent_rep: bool = True,
    concatenation_sent_difference: bool = True,
    concatenation_sent_multiplication: bool = False,
    loss_fct: Any = None,
) -> Objective:
    """A softmax over a concatenation of the two vectors: classification."""
    parts = (concatenation_sent_rep, concatenation_sent_difference, concatenation_sent_multiplication)
    if not any(parts):
        raise ValueError(
            "At least one of concatenation_sent_rep, concatenation_sent_difference, "
            "or concatenation_sent_multiplication must be True."
        )
    return Concatenated(parts, embedding_dimension, num_labels, loss_fct or nn.CrossEntropyLoss())


def margin_mse(model: Any, similarity_fct: Any = pairwise_dot_score) -> Objective:
    """The teacher's margins between candidates: margin_mse."""
    objective = MarginMSE()
    objective.similarity = similarity_fct
    return objective


def distill_kl(
    model: Any,
    similarity_fct: Any = pairwise_dot_score,
    temperature: float = 1.0,
    student_temperature: float | None = None,
    teacher_temperature: float | None = None,
) -> Objective:
    """The teacher's softmax over candidates: kl."""
    student = temperature if student_temperature is None else student_temperature
    objective = KL(student, temperature if teacher_temperature is None else teacher_temperature)
    objective.similarity = similarity_fct
    return objective


def embed_distill(model: Any, distance_metric: str = "cosine", projection_dim: int | None = None) -> Objective:
    """A teacher's vectors: embedding_mse, embedding_cosine, or the length of the difference."""
    if distance_metric not in ("mse", "l2", "cosine"):
        raise ValueError(f"distance_metric must be one of 'mse', 'l2', 'cosine', but got {distance_metric!r}.")
    return EmbeddingDistance(distance_metric, model.get_embedding_dimension() or 0, projection_dim)


def mse(model: Any, projection_dim: int | None = None) -> Objective:
    """A teacher's vectors: embedding_mse."""
    return embed_distill(model, "mse", projection_dim)


def mega_batch(
    model: Any,
    positive_margin: float = 0.8,
    negative_margin: float = 0.3,
    use_mini_batched_version: bool = True,
    mini_batch_size: int = 50,
    mini_batch_num_tokens: int | None = None,
    show_progress_bar: bool = False,
) -> Objective:
    """The hardest negative of a large batch."""
    return MegaBatchMargin(positive_margin, negative_margin)


LOSSES: dict[str, Build] = {
    "AnglELoss": angle,
    "BatchAllTripletLoss": batch_all,
    "BatchHardSoftMarginTripletLoss": batch_hard_soft,
    "BatchHardTripletLoss": batch_hard,
    "BatchSemiHardTripletLoss": batch_semi_hard,
    "ContrastiveLoss": contrastive,
    "CoSENTLoss": cosent,
    "CosineSimilarityLoss": cosine_similarity,
    "DistillKLDivLoss": distill_kl,
    "EmbedDistillLoss": embed_distill,
    "MSELoss": mse,
    "MarginMSELoss": margin_mse,
    "MultipleNegativesRankingLoss": ranking,
    "MultipleNegativesSymmetricRankingLoss": symmetric_ranking,
    "OnlineContrastiveLoss": online_contrastive,
    "SoftmaxLoss": softmax,
    "TripletLoss": triplet,
}
OLDER: dict[str, dict[str, str]] = {"SoftmaxLoss": {"sentence_embedding_dimension": "embedding_dimension"}}
CLASSES: dict[str, type[Loss]] = {name: made(name, build, older=OLDER.get(name, {})) for name, build in LOSSES.items()}
