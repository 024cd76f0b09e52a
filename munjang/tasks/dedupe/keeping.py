"""Which of several duplicates stays, and which texts are equal."""

import unicodedata
from collections.abc import Callable, Sequence

import numpy as np

from munjang.tasks.paraphrases.neighbours import Graph
from munjang.types import Ints

# From texts and a graph, where there are any, the order in which rows are kept.
Keep = Callable[[Sequence[str] | None, Graph | None, int], Ints]


def normal(text: str) -> str:
    """A text without the differences that mean nothing: Unicode forms, capitals, white space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _first(texts: Sequence[str] | None, graph: Graph | None, count: int) -> Ints:
    return np.arange(count)


def _longest(texts: Sequence[str] | None, graph: Graph | None, count: int) -> Ints:
    return np.argsort([-len(text) for text in texts or []], kind="stable")


def _central(texts: Sequence[str] | None, graph: Graph | None, count: int) -> Ints:
    if graph is None:  # equal texts have no centre
        return np.arange(count)
    sums = np.zeros(count)
    np.add.at(sums, np.repeat(np.arange(count), np.diff(graph.starts)), graph.scores_E)
    return np.argsort(-sums, kind="stable")


KEEP: dict[str, Keep] = {"first": _first, "longest": _longest, "central": _central}
