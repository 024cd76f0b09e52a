"""Clusters: groups of texts, what each is about, and its most typical text.

Run: python examples/cluster.py [MODEL]
"""

import sys

from munjang import BiEncoder
from munjang.tasks.cluster import ClusterConfig, cluster, groups_of
from munjang.tasks.vectors import unit_vectors

TEXTS = [
    *("How do I reset my password?", "I forgot my password.", "My password does not work.", "Change the password"),
    *("Where is my parcel?", "My parcel is late.", "The parcel has not arrived.", "Track a parcel"),
    *("Can I pay by card?", "Do you take credit cards?", "My card was refused.", "Nice weather today."),
]

model = BiEncoder.load(*sys.argv[1:])  # none named: the bundled one, which needs no network
vectors = unit_vectors(TEXTS, model)  # once, for every method
for config in (
    ClusterConfig(threshold=0.75, min_size=3),  # communities
    ClusterConfig(method="agglomerative", threshold=0.65),
    ClusterConfig(method="kmeans", num_clusters=3),
):
    found = cluster(vectors, config=config)
    print(f"{config.method}: {found.num_clusters} clusters")
    for group in groups_of(found, vectors, TEXTS, num_keywords=2):
        print(f"  {group.size} texts, {', '.join(group.keywords)}: {TEXTS[group.representatives[0]]}")
