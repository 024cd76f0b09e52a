"""Semantic textual similarity: do the scores of pairs correlate with people's?"""

import math
from typing import Any

from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Kind, Measured, Settings, Source, compare_pairs
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.bootstrap import spearman_of
from munjang.evaluation.metrics.correlation import pearson, spearman


def read(source: Source, settings: Settings) -> Examples:
    """Read two texts and a score."""
    examples = read_rows(source, settings, (2, 2), "scores")
    if examples.scores is None or examples.scores.ndim != 1:
        raise InputError(f"{examples.name}: one score a row is needed, not several.")
    return examples


def evaluate(model: Any, examples: Examples, settings: Settings) -> Measured:
    """Measure Pearson and Spearman correlation of each similarity function."""
    assert examples.scores is not None
    metrics, compared = {}, compare_pairs(model, examples, settings)
    for name, scores in compared.items():
        metrics[f"pearson{name}"] = pearson(scores, examples.scores)
        metrics[f"spearman{name}"] = spearman(scores, examples.scores)
    undefined = [name for name, value in metrics.items() if math.isnan(value)]
    why = "a correlation needs two rows or more, and scores that differ on both sides"
    notes = (f"undefined: {', '.join(undefined)}; {why}",) if undefined else ()
    main = compared["_cosine"] if "_cosine" in compared else compared[""]
    return Measured(metrics, notes, spearman_of(main, examples.scores))


KIND = Kind(
    "semantic textual similarity: two texts and a score",
    {"bi": "spearman_cosine", "cross": "spearman"},
    read,
    evaluate,
    lambda contents: contents.num_texts == 2 and contents.has_scores,
)
