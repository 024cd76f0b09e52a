"""Cross-encoder: pairs of candidates in the right order."""

from munjang.objectives.lambda_loss import LambdaLoss


class RankNet(LambdaLoss):
    """LambdaLoss where every pair has the same weight."""

    def __init__(self, k: int | None = None, sigma: float = 1.0) -> None:
        super().__init__(weighting="none", k=k, sigma=sigma)
