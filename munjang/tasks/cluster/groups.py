"""Describe clusters by their most typical texts and their own words.    N rows, D dimension."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from munjang.display import table
from munjang.errors import InputError
from munjang.tasks.cluster.clustering import Clustering
from munjang.tasks.terms_of_groups import terms_of
from munjang.tasks.vectors import unit_vectors
from munjang.text.inputs import as_texts
from munjang.types import Floats, Ints


@dataclass(frozen=True)
class Group:
    """One cluster. The representatives are places, the most typical first."""

    label: int
    size: int
    representatives: list[int]
    keywords: list[str]


class Groups(list[Group]):
    """Described clusters: a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        rows = [[str(each.label), f"{each.size:,}", ", ".join(each.keywords)] for each in self]
        return table(f"{len(self)} clusters", ["cluster", "rows", "keywords"], rows)


def typical(vectors_MD: Floats) -> Ints:
    """Order rows from the most typical on: by the mean cosine with all others, which is that with their centre."""
    centre_D = vectors_MD.mean(0, dtype=np.float64).astype(np.float32)
    return np.argsort(-(vectors_MD @ centre_D), kind="stable")


def groups_of(
    found: Clustering,
    vectors_ND: Floats,
    texts: Sequence[str] | None = None,
    num_representatives: int = 3,
    num_keywords: int = 8,
    progress: bool | None = False,
) -> list[Group]:
    """Describe every cluster by its representatives and, where there are texts, by the words that set it apart.

    Korean texts give nouns. The vectors are those of all texts, in the order that was clustered.

    Raises InputError where there are not as many vectors or texts as clustered rows.

    >>> from munjang import BiEncoder
    >>> from munjang.tasks.cluster import ClusterConfig, cluster
    >>> vectors = BiEncoder.load().encode(["고양이가 잔다.", "고양이가 낮잠을 잔다.", "주가가 떨어졌다."])
    >>> groups_of(cluster(vectors, config=ClusterConfig(threshold=0.7, min_size=2)), vectors)[0].size
    2
    """
    given = {"vectors": len(vectors_ND), "texts": len(vectors_ND if texts is None else texts)}
    for what, number in given.items():
        if number != len(found.labels_N):
            raise InputError(
                f"{number:,} {what} for {len(found.labels_N):,} clustered rows; give those they were made of."
            )
    order = np.argsort(found.labels_N, kind="stable")
    limits = np.searchsorted(found.labels_N[order], np.arange(found.num_clusters + 1))
    members = [order[start:stop] for start, stop in pairwise(limits.tolist())]
    keywords: list[list[str]] = [[] for _ in members]
    if texts is not None:
        said = as_texts(texts)
        weighed = terms_of([[said[row] for row in rows.tolist()] for rows in members], num_keywords, progress=progress)
        keywords = [[term for term, _ in each] for each in weighed]
    groups = Groups()
    for label, rows in enumerate(members):
        part_MD = unit_vectors(vectors_ND[rows], what=f"vectors of cluster {label}")
        chosen = rows[typical(part_MD)[:num_representatives]]
        groups.append(Group(label, len(rows), chosen.tolist(), keywords[label]))
    return groups
