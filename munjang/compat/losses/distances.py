"""Their functions of distance, as they name them."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from munjang.compat.similarity_functions import pairwise_cos_sim, pairwise_euclidean_sim, pairwise_manhattan_sim
from munjang.objectives.distances import DISTANCES_OF_ALL


class SiameseDistanceMetric:
    """Distances of matching rows, for ContrastiveLoss and OnlineContrastiveLoss."""

    @staticmethod
    def EUCLIDEAN(x: Tensor, y: Tensor) -> Tensor:  # noqa: N802  # their name
        """Return Euclidean distances."""
        return F.pairwise_distance(x, y, p=2)

    @staticmethod
    def MANHATTAN(x: Tensor, y: Tensor) -> Tensor:  # noqa: N802
        """Return Manhattan distances."""
        return F.pairwise_distance(x, y, p=1)

    @staticmethod
    def COSINE_DISTANCE(x: Tensor, y: Tensor) -> Tensor:  # noqa: N802
        """Return one minus the cosine."""
        return 1 - F.cosine_similarity(x, y)


class TripletDistanceMetric:
    """Distances of matching rows, for TripletLoss."""

    @staticmethod
    def COSINE(x: Tensor, y: Tensor) -> Tensor:  # noqa: N802
        """Return one minus the cosine."""
        return 1 - pairwise_cos_sim(x, y)

    @staticmethod
    def EUCLIDEAN(x: Tensor, y: Tensor) -> Tensor:  # noqa: N802
        """Return Euclidean distances."""
        return -pairwise_euclidean_sim(x, y)

    @staticmethod
    def MANHATTAN(x: Tensor, y: Tensor) -> Tensor:  # noqa: N802
        """Return Manhattan distances."""
        return -pairwise_manhattan_sim(x, y)


class BatchHardTripletLossDistanceFunction:
    """Distances of all rows from each other, for the triplet losses over labels."""

    @staticmethod
    def cosine_distance(embeddings: Tensor) -> Tensor:
        """Return one minus the cosines, [B, B]."""
        return DISTANCES_OF_ALL["cosine"](embeddings, embeddings)

    @staticmethod
    def eucledian_distance(embeddings: Tensor, squared: bool = False) -> Tensor:
        """Return Euclidean distances, [B, B]."""
        found = DISTANCES_OF_ALL["euclidean"](embeddings, embeddings)
        return found**2 if squared else found

    euclidean_distance = eucledian_distance


def of_all(metric: Any) -> Any:
    """Return a function of two sets of rows from one of a single set."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        found: Tensor = metric(a)
        return found

    return distance


__all__ = ["BatchHardTripletLossDistanceFunction", "SiameseDistanceMetric", "TripletDistanceMetric", "of_all"]
