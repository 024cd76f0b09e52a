"""Pair classification: does a threshold on the score tell pairs that belong together from others?"""

from typing import Any

import numpy as np

from munjang.data.examples import Examples
from munjang.evaluation.kinds.base import Contents, Kind, Measured, Settings, Source, compare_pairs, is_positive
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.bootstrap import average_precision_of
from munjang.evaluation.metrics.classification import average_precision, best_accuracy, best_f1


def read(source: Source, settings: Settings) -> Examples:
    """Read two texts and a label, yes or no."""
    examples = read_rows(source, settings, (2, 2), "labels")
    is_positive(examples)  # or refused
    return examples


def evaluate(model: Any, examples: Examples, settings: Settings) -> Measured:
    """Measure average precision, and the thresholds with the best F1 and the best accuracy."""
    positive = is_positive(examples)
    metrics, compared = {}, compare_pairs(model, examples, settings)
    for name, scores in compared.items():
        by_f1, by_accuracy = best_f1(scores, positive), best_accuracy(scores, positive)
        metrics[f"ap{name}"] = average_precision(scores, positive)
        metrics[f"f1{name}"] = by_f1.value
        metrics[f"f1_threshold{name}"] = by_f1.threshold
        metrics[f"precision{name}"] = by_f1.precision
        metrics[f"recall{name}"] = by_f1.recall
        metrics[f"accuracy{name}"] = by_accuracy.value
        metrics[f"accuracy_threshold{name}"] = by_accuracy.threshold
    notes = [f"{int(positive.sum()):,} of {len(positive):,} pairs are positive; thresholds are chosen on these pairs"]
    if not np.any(positive):
        notes.append("undefined: average precision and F1 need a positive pair")
    main = compared["_cosine"] if "_cosine" in compared else compared[""]
    return Measured(metrics, tuple(notes), average_precision_of(main, positive))


def fits(contents: Contents) -> bool:
    """Recognise two texts and two classes."""
    has_two = contents.num_classes is not None and contents.num_classes <= 2
    return contents.num_texts == 2 and has_two and not contents.has_scores


KIND = Kind(
    "pair classification: two texts and yes or no (1 or 0)", {"bi": "ap_cosine", "cross": "ap"}, read, evaluate, fits
)
