"""Settings of topics: one frozen record, whose fields are the flags of `munjang topics` too."""

from dataclasses import dataclass
from typing import Literal

from munjang.errors import InputError, unknown
from munjang.options import option

CLUSTERS = ("kmeans", "hdbscan")
REDUCERS = ("pca", "umap", "none")
OUTLIERS = ("keep", "nearest")


@dataclass(frozen=True, kw_only=True)
class TopicConfig:
    """Settings of topics. The default needs no extra: principal components and k-means.

    Raises InputError for a setting out of its range.

    >>> TopicConfig(num_topics=2, num_terms=3).cluster
    'kmeans'
    """

    num_topics: int | None = option("how many topics (default: as many as are best apart)", None)
    cluster: Literal["kmeans", "hdbscan"] = option(
        "k-means, or HDBSCAN, which leaves out what belongs nowhere (needs scikit-learn)", "kmeans"
    )
    reduce: Literal["pca", "umap", "none"] = option(
        "what vectors are clustered by: principal components, UMAP (needs umap-learn), or themselves", "pca"
    )
    dimension: int | None = option("dimension of the reduced vectors (default: 50 with pca, 5 with umap)", None)
    min_size: int = option("texts of the smallest topic: of HDBSCAN, and on average where k-means finds the number", 10)
    outliers: Literal["keep", "nearest"] = option(
        "texts of no topic: keep them so, or give them to the nearest", "keep"
    )
    num_terms: int = option("terms of a topic", 10)
    max_words: int = option("words of a term", 1)
    diversity: float = option("terms unlike each other by maximal marginal relevance: 0 is off, 1 the most", 0.0)
    seed: int = option("of k-means and UMAP", 0)

    def __post_init__(self) -> None:
        for name in ("num_topics", "dimension", "min_size", "num_terms", "max_words"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}.")
        if not 0 <= self.diversity <= 1:
            raise InputError(f"diversity must be between 0 and 1, not {self.diversity}.")
        for what, given, allowed in (
            ("way to cluster", self.cluster, CLUSTERS),
            ("way to reduce", self.reduce, REDUCERS),
            ("outliers", self.outliers, OUTLIERS),
        ):
            if given not in allowed:
                raise unknown(what, given, allowed)
