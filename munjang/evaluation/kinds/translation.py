"""Translation matching: is a text's nearest neighbour in the other language its translation?"""

from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.evaluation.kinds.base import Contents, Kind, Measured, Settings, Source, encode_columns
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.bootstrap import mean_of
from munjang.types import Doubles, Floats
from munjang.vectors.nearest import nearest


def read(source: Source, settings: Settings) -> Examples:
    """Read texts and their translations."""
    return read_rows(source, settings, (2, 2))


def evaluate(model: Any, examples: Examples, settings: Settings) -> Measured:
    """Measure accuracy in both directions, by cosine."""
    first_ND, second_ND = encode_columns(model, examples.texts, settings)
    forth_N = _is_right(first_ND, second_ND, examples.texts[1], settings.progress)
    back_N = _is_right(second_ND, first_ND, examples.texts[0], settings.progress)
    forth, back = float(np.mean(forth_N)), float(np.mean(back_N))
    metrics = {"accuracy": (forth + back) / 2, "accuracy_1_to_2": forth, "accuracy_2_to_1": back}
    return Measured(metrics, sample=mean_of((forth_N + back_N) / 2))


def _is_right(from_ND: Floats, to_ND: Floats, texts: list[str], progress: bool | None) -> Doubles:
    """Return 1 where the nearest row holds the right text, be it another row with the same text."""
    rows_N = nearest(from_ND, to_ND, 1, progress=progress).rows_AK[:, 0].tolist()
    return np.array([texts[found] == text for found, text in zip(rows_N, texts, strict=True)], np.float64)


def fits(contents: Contents) -> bool:
    """Recognise two texts whose columns are named after languages; any other two may be anything."""
    return contents.is_translated and not contents.has_scores and not contents.has_labels


KIND = Kind("translation matching: a text and its translation", {"bi": "accuracy"}, read, evaluate, fits)
