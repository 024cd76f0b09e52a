"""Groups of texts: k-means, agglomerative, HDBSCAN, communities; and what each is about."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "ClusterConfig": "munjang.tasks.cluster.config",
    "cluster": "munjang.tasks.cluster.clustering",
    "communities": "munjang.tasks.cluster.community",
    "groups_of": "munjang.tasks.cluster.groups",
}

if TYPE_CHECKING:
    from munjang.tasks.cluster.clustering import cluster as cluster
    from munjang.tasks.cluster.community import communities as communities
    from munjang.tasks.cluster.config import ClusterConfig as ClusterConfig
    from munjang.tasks.cluster.groups import groups_of as groups_of
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)


__all__ = sorted(PUBLIC)
