"""Translation matching: whether a text's nearest neighbour among all of the other language is its translation."""

from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.evaluation.kinds.base import Kind, Measured, Settings, Source, encode_columns
from munjang.evaluation.kinds.rows import read_rows
from munjang.types import Floats
from munjang.vectors.nearest import nearest


def read(source: Source, settings: Settings) -> Examples:
    """A text and its translation."""
    return read_rows(source, settings, (2, 2))


def evaluate(model: Any, examples: Examples, settings: Settings) -> Measured:
    """Accuracy in both directions, by cosine."""
    first_ND, second_ND = encode_columns(model, examples.texts, settings)
    forth = _found(first_ND, second_ND, examples.texts[1])
    back = _found(second_ND, first_ND, examples.texts[0])
    return Measured({"accuracy": (forth + back) / 2, "accuracy_1_to_2": forth, "accuracy_2_to_1": back})


def _found(from_ND: Floats, to_ND: Floats, texts: list[str]) -> float:
    """A row that holds the same text is as good as the row itself."""
    hits = [texts[place[0]] == texts[row] for row, (place, _) in enumerate(nearest(from_ND, to_ND, 1))]
    return float(np.mean(hits))


KIND = Kind("translation matching: a text and its translation", {"bi": "accuracy"}, read, evaluate)
