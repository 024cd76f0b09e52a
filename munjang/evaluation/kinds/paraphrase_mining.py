"""Paraphrase mining: are the closest pairs among all texts those that say the same?"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.errors import InputError
from munjang.evaluation.kinds.base import Contents, Kind, Measured, Settings, Source, encode_documents, is_positive
from munjang.evaluation.kinds.corpus import find, read_relevances, read_texts
from munjang.evaluation.kinds.rows import read_rows
from munjang.evaluation.metrics.classification import average_precision, best_f1
from munjang.vectors.nearest import nearest

NUM_NEIGHBOURS = 100  # of each text, that are candidates
MAX_PAIRS = 500_000


@dataclass(frozen=True)
class Duplicates:
    """Distinct texts, and the pairs of their indices that say the same."""

    name: str
    texts: list[str]
    pairs: frozenset[tuple[int, int]]

    def __len__(self) -> int:
        return len(self.texts)


def read(source: Source, settings: Settings) -> Duplicates:
    """Read rows of two texts and yes or no; or a folder with `texts` (id, text) and `duplicates` (id, id, 1)."""
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        return _of_folder(source)
    examples = read_rows(source, settings, (2, 2), "labels")
    rows = zip(*examples.texts, is_positive(examples).tolist(), strict=True)
    return _duplicates(examples.name, [*examples.texts[0], *examples.texts[1]], [(a, b) for a, b, yes in rows if yes])


def evaluate(model: Any, data: Duplicates, settings: Settings) -> Measured:
    """Measure average precision and best F1 over the closest pairs; a pair that was not found counts as missed."""
    vectors_ND = encode_documents(model, data.texts, settings)
    scores: dict[tuple[int, int], float] = {}
    found = nearest(vectors_ND, vectors_ND, NUM_NEIGHBOURS + 1, model.similarity_name, progress=settings.progress)
    for row, (others, closeness) in enumerate(zip(found.rows_AK.tolist(), found.scores_AK.tolist(), strict=True)):
        for other, score in zip(others, closeness, strict=True):
            if other != row:
                scores[min(row, other), max(row, other)] = score
    pairs = list(scores)
    values = np.fromiter(scores.values(), np.float64, len(scores))
    best = np.argsort(-values, kind="stable")[:MAX_PAIRS]
    is_gold = np.array([pairs[place] in data.pairs for place in best.tolist()], bool)
    total = len(data.pairs)
    at = best_f1(values[best], is_gold, total)
    metrics = {
        "ap": average_precision(values[best], is_gold, total),
        "f1": at.value,
        "f1_threshold": at.threshold,
        "precision": at.precision,
        "recall": at.recall,
    }
    note = f"{total:,} pairs are known to say the same; any other that does counts as wrong"
    return Measured(metrics, (note, f"{int(is_gold.sum()):,} of them are among the {len(best):,} closest"))


def _of_folder(folder: str | os.PathLike[str]) -> Duplicates:
    texts, duplicates = find(folder, "texts"), find(folder, "duplicates")
    if texts is None or duplicates is None:
        raise InputError(f"{folder}: paraphrase_mining needs the tables texts (id, text) and duplicates (id, id, 1).")
    by_id = read_texts(texts)
    pairs = [(a, b) for a, each in read_relevances(duplicates).items() for b, value in each.items() if value > 0]
    strange = [name for pair in pairs for name in pair if name not in by_id]
    if strange:
        raise InputError(f"{duplicates}: no text has the id {strange[0]!r}.")
    return _duplicates(os.fspath(folder), list(by_id.values()), [(by_id[a], by_id[b]) for a, b in pairs])


def _duplicates(name: str, texts: list[str], pairs: list[tuple[str, str]]) -> Duplicates:
    place_of = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    places = [sorted((place_of[a], place_of[b])) for a, b in pairs]
    found = frozenset((a, b) for a, b in places if a != b)  # a text is no paraphrase of itself
    if not found:
        raise InputError(f"{name}: no pair says the same; there is nothing to find.")
    return Duplicates(name, list(place_of), found)


def fits(contents: Contents) -> bool:
    """Recognise a folder; rows of pairs are for `pairs`, unless this kind is named."""
    return "duplicates" in contents.tables and "qrels" not in contents.tables


KIND = Kind("paraphrase mining: two texts and yes or no, all texts mined", {"bi": "ap"}, read, evaluate, fits)
