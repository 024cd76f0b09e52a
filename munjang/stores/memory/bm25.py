"""BM25 over texts that are split into words already: an inverted index in memory.    N rows.

score = sum over the query's words of  idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean length)),
idf = ln(1 + (N - n + 0.5) / (n + 0.5)), n rows of N have the word (Robertson and Zaragoza 2009, as in Lucene).
"""

from array import array
from collections import Counter

import numpy as np

from munjang.stores.memory.columns import Buffer
from munjang.types import Bools, Doubles

K1, B = 1.2, 0.75


class Postings:
    """Count the words of rows. Rows are numbered in the order of `append`."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._lengths = Buffer(dtype=np.int64)

    def append(self, terms: list[str]) -> None:
        start = len(self._lengths.rows)
        words_of_rows = [words.split() for words in terms]
        for row, words in enumerate(words_of_rows, start):
            for word, count in Counter(words).items():
                self._rows.setdefault(word, array("q")).append(row)
                self._counts.setdefault(word, array("q")).append(count)
        self._lengths.append([len(words) for words in words_of_rows])

    def scores(self, query: str, is_alive: Bools) -> Doubles:
        """Score every row; 0 where no word of the query occurs. Rows that are gone count for nothing."""
        num_rows = len(is_alive)
        scores_N = np.zeros(num_rows)
        lengths = self._lengths.rows[:num_rows]
        num_alive = max(int(is_alive.sum()), 1)
        mean_length = max(float(lengths[is_alive].sum()) / num_alive, 1e-9)
        for word, times in Counter(query.split()).items():
            if word not in self._rows:
                continue
            rows, counts = np.array(self._rows[word]), np.array(self._counts[word])  # copies: others may be adding
            kept = is_alive[rows]
            rows, counts = rows[kept], counts[kept]
            idf = np.log1p((num_alive - len(rows) + 0.5) / (len(rows) + 0.5))
            scale = K1 * (1 - B + B * lengths[rows] / mean_length)
            scores_N[rows] += times * idf * counts * (K1 + 1) / (counts + scale)
        return scores_N
