"""Clustering: does k-means over the vectors find the classes again?"""

from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Contents, Kind, Measured, Settings, Source, encode_columns
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.clustering import agreement
from munjang.vectors.kmeans import kmeans


def read(source: Source, settings: Settings) -> Examples:
    """Read texts and their classes."""
    examples = read_rows(source, settings, (1, 1), "labels")
    if examples.labels is None or len(np.unique(examples.labels)) < 2:
        raise InputError(f"{examples.name}: all rows are of one class; clusters of them say nothing.")
    return examples


def evaluate(model: Any, examples: Examples, settings: Settings) -> Measured:
    """Measure the V-measure of as many clusters as there are classes."""
    (vectors_ND,) = encode_columns(model, examples.texts, settings)
    assert examples.labels is not None
    num_clusters = len(np.unique(examples.labels))
    found = agreement(examples.labels, kmeans(vectors_ND, num_clusters, settings.seed).clusters_N)
    metrics = {"v_measure": found.v_measure, "homogeneity": found.homogeneity, "completeness": found.completeness}
    return Measured(metrics, (f"k-means with {num_clusters} clusters, the best of 10 starts, seed {settings.seed}",))


def fits(contents: Contents) -> bool:
    """Recognise a text and its class, where no rows to train on were given."""
    return contents.num_texts == 1 and contents.has_labels and not contents.has_train


KIND = Kind("clustering: a text and its class", {"bi": "v_measure"}, read, evaluate, fits)
