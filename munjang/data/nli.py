"""Inference pairs as triplets: a premise, a hypothesis that follows from it, one that contradicts it."""

from collections import defaultdict

from munjang.data.examples import Examples
from munjang.errors import InputError


def triplets_of(nli: Examples) -> Examples:
    """Pair each premise's entailed hypotheses with its contradictions; a hypothesis is used once.

    >>> import numpy as np
    >>> rows = Examples("made up", (["p", "p"], ["yes", "no"]), labels=np.array([1, 0]),
    ...                 label_names=("contradiction", "entailment", "neutral"))
    >>> triplets_of(rows).texts
    (['p'], ['yes'], ['no'])
    """
    if nli.labels is None or not {"entailment", "contradiction"} <= set(nli.label_names):
        raise InputError(f"{nli.name}: triplets come from labels named entailment and contradiction.")
    by_premise: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for premise, hypothesis, label in zip(*nli.texts, nli.labels.tolist(), strict=True):
        by_premise[premise][nli.label_names[label]].append(hypothesis)
    rows = [
        (premise, positive, negative)
        for premise, hypotheses in by_premise.items()
        for positive, negative in zip(hypotheses["entailment"], hypotheses["contradiction"], strict=False)
    ]
    if not rows:
        raise InputError(f"{nli.name}: no premise has a hypothesis of both kinds.")
    columns = tuple(list(column) for column in zip(*rows, strict=True))
    return Examples(f"triplets of {nli.name}", columns, ("anchor", "positive", "negative"))
