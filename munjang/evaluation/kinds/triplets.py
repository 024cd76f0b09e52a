"""Triplets: is the anchor closer to its positive than to its negatives?"""

from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.evaluation.kinds.base import Kind, Measured, Settings, Source, encode_columns
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.bootstrap import mean_of
from munjang.vectors.similarity import PAIRWISE


def read(source: Source, settings: Settings) -> Examples:
    """Read an anchor, a positive, and one negative or more."""
    return read_rows(source, settings, (3, None))


def evaluate(model: Any, examples: Examples, settings: Settings) -> Measured:
    """Measure how often the positive is closer than every negative; a tie is a miss."""
    anchor_ND, positive_ND, *negatives = encode_columns(model, examples.texts, settings)
    right = {}
    for name, closeness in PAIRWISE.items():
        nearest = np.max([closeness(anchor_ND, each) for each in negatives], axis=0)
        right[f"accuracy_{name}"] = closeness(anchor_ND, positive_ND) > nearest
    metrics = {name: float(np.mean(right_N)) for name, right_N in right.items()}
    return Measured(metrics, sample=mean_of(right["accuracy_cosine"]))


KIND = Kind(
    "triplets: anchor, positive and negatives",
    {"bi": "accuracy_cosine"},
    read,
    evaluate,
    lambda contents: contents.num_texts >= 3,
)
