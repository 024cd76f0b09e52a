"""Settings of clustering, for `cluster` and of `munjang cluster`."""

from dataclasses import dataclass
from typing import Literal

from munjang.errors import InputError, unknown
from munjang.options import option

LINKAGES = ("average", "complete", "single")


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """The method, and what the methods ask for; each reads the settings that name it.

    Raises InputError for a setting out of its range.

    >>> ClusterConfig(method="kmeans", num_clusters=3).seed
    0
    """

    method: Literal["communities", "kmeans", "agglomerative", "hdbscan"] = option(
        "communities (texts near a common one), kmeans, agglomerative or hdbscan", default="communities"
    )
    threshold: float = option("communities, agglomerative: cosine of texts that belong together", default=0.75)
    min_size: int = option("communities, hdbscan: the fewest texts of a cluster", default=10)
    num_clusters: int | None = option(
        "kmeans: how many clusters (default: the square root of half the texts)", default=None
    )
    linkage: Literal["average", "complete", "single"] = option(
        "agglomerative: which cosine of two clusters counts: the mean, the least, the largest", default="average"
    )
    seed: int = option("kmeans: of the random start", default=0)
    is_exact: bool | None = option(
        "communities, agglomerative: look at every pair (default: up to some hundred thousand texts)", default=None
    )

    def __post_init__(self) -> None:
        if self.linkage not in LINKAGES:
            raise unknown("linkage", self.linkage, LINKAGES)
        if not -1 <= self.threshold <= 1:
            raise InputError(f"threshold is a cosine, between -1 and 1, not {self.threshold}.")
        if self.min_size < 1:
            raise InputError(f"min_size must be at least 1, not {self.min_size}.")
        if self.method == "hdbscan" and self.min_size < 2:
            raise InputError("min_size of hdbscan must be at least 2, not 1.")
