"""Measure how well the terms of topics go together: NPMI over documents (Bouma, 2009; the c_npmi of topic models).

W words, N documents.
"""

import math
import re
from collections.abc import Sequence
from itertools import combinations

WORD = re.compile(r"\w+")


def coherence(topics: Sequence[Sequence[str]], documents: Sequence[str], top: int = 10) -> float:
    """Return the mean NPMI of all pairs of a topic's first `top` words over topics: -1 never together, 1 always.

    Two words are together where a document has both; documents are taken as sets of lower-case words. A pair that
    never meets counts -1. Topics of fewer than two words are left out.

    >>> round(coherence([["a", "b"]], ["a b", "a b", "c"]), 6)
    1.0
    """
    wanted = {word for topic in topics for word in topic[:top]}
    rows: dict[str, set[int]] = {word: set() for word in wanted}
    for row, document in enumerate(documents):
        for word in wanted.intersection(WORD.findall(document.lower())):
            rows[word].add(row)
    scores = []
    for topic in topics:
        pairs = list(combinations(dict.fromkeys(topic[:top]), 2))
        if pairs:
            scores.append(sum(_npmi(rows[a], rows[b], len(documents)) for a, b in pairs) / len(pairs))
    return sum(scores) / len(scores) if scores else 0.0


def _npmi(first: set[int], second: set[int], num_documents: int) -> float:
    both = len(first & second) / num_documents
    if both == 0:
        return -1.0
    if both == 1:
        return 1.0
    apart = (len(first) / num_documents) * (len(second) / num_documents)
    return math.log(both / apart) / -math.log(both)
