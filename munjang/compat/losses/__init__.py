"""Losses under their names, over our objectives: `losses.MultipleNegativesRankingLoss(model)`."""

from munjang.compat.gaps import missing_name
from munjang.compat.losses.base import Loss, made
from munjang.compat.losses.cached import CACHED
from munjang.compat.losses.distances import (
    BatchHardTripletLossDistanceFunction,
    SiameseDistanceMetric,
    TripletDistanceMetric,
)
from munjang.compat.losses.guided import Guided
from munjang.compat.losses.table import CLASSES, guided
from munjang.compat.losses.tension import (
    ContrastiveTensionLoss,
    ContrastiveTensionLossInBatchNegatives,
    Terms,
    spread_out,
)
from munjang.compat.losses.wrappers import AdaptiveLayerLoss, Matryoshka2dLoss, MatryoshkaLoss

ALL: dict[str, type] = {
    **CLASSES,
    **CACHED,
    "ContrastiveTensionLoss": ContrastiveTensionLoss,
    "ContrastiveTensionLossInBatchNegatives": ContrastiveTensionLossInBatchNegatives,
    "GISTEmbedLoss": made("GISTEmbedLoss", guided, Guided),
    "GlobalOrthogonalRegularizationLoss": made("GlobalOrthogonalRegularizationLoss", spread_out, Terms),
    "AdaptiveLayerLoss": AdaptiveLayerLoss,
    "Matryoshka2dLoss": Matryoshka2dLoss,
    "MatryoshkaLoss": MatryoshkaLoss,
    "BatchHardTripletLossDistanceFunction": BatchHardTripletLossDistanceFunction,
    "SiameseDistanceMetric": SiameseDistanceMetric,
    "TripletDistanceMetric": TripletDistanceMetric,
}
__all__ = ["ALL", "Loss", *ALL]  # the names of a table


def __getattr__(name: str) -> type:
    if name in ALL:
        return ALL[name]
    raise missing_name("munjang.compat.losses", name)
