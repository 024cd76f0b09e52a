"""Which kind of evaluation some data is for, by what it holds."""

import os

import numpy as np

from munjang.data.columns import LABEL_COLUMNS, SCORE_COLUMNS, choose_texts
from munjang.data.examples import Examples
from munjang.data.files import STDIN
from munjang.data.sources import tables
from munjang.errors import InputError
from munjang.evaluation.kinds.base import Settings, Source
from munjang.evaluation.kinds.corpus import Retrieval, find, is_retrieval
from munjang.evaluation.kinds.rows import read_rows

HOW = "give --kind (kind=)"


def recognise(source: "Source | Retrieval", settings: Settings) -> tuple[str, "Source | Retrieval"]:
    """The name of the kind, and the source; or its rows, where they had to be read to tell."""
    if isinstance(source, Retrieval):
        return "retrieval", source
    if isinstance(source, Examples):
        has_scores = source.scores is not None and settings.label is None
        return _by_contents(source, len(source.texts), has_scores, source.labels is not None, settings), source
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        if is_retrieval(source):
            return "retrieval", source
        if find(source, "duplicates"):
            return "paraphrase_mining", source
    if source == STDIN:
        raise InputError(f"Standard input can be read only once, and its kind is not known before; {HOW}.")
    name, columns = _columns(source, settings.format)
    num_texts = len(choose_texts(name, settings.texts, columns, (1, None)))
    known = {column.strip().lower() for column in columns}
    has_labels = settings.label is not None or bool(known & set(LABEL_COLUMNS))
    has_scores = settings.score is not None or (settings.label is None and bool(known & set(SCORE_COLUMNS)))
    if num_texts == 2 and has_labels and not has_scores:
        examples = read_rows(source, settings, (2, 2), "labels")
        return _by_contents(examples, 2, False, True, settings), examples
    return _by_contents(name, num_texts, has_scores, has_labels, settings), source


def _by_contents(data: Examples | str, num_texts: int, has_scores: bool, has_labels: bool, settings: Settings) -> str:
    name = data if isinstance(data, str) else data.name
    if num_texts >= 3:
        return "triplets"
    if num_texts == 2 and has_scores:
        return "sts"
    if num_texts == 2 and not has_labels:
        return "translation"
    if num_texts == 2 and isinstance(data, Examples) and data.labels is not None:
        num_classes = max(len(data.label_names), len(np.unique(data.labels)))
        if num_classes <= 2:
            return "pairs"
        if num_classes == 3:
            return "nli"
        raise InputError(f"{name}: two texts and {num_classes} classes are no kind that is known by itself; {HOW}.")
    if has_labels and settings.train is not None:
        return "classification"
    if has_labels:
        raise InputError(f"{name}: a text and its class can be for clustering or classification; {HOW}.")
    raise InputError(f"{name}: one text a row and nothing said about it; nothing can be measured.")


def _columns(source: Source, format: str | None) -> tuple[str, list[str]]:
    """What a table's columns are called; no more of it is read than its head."""
    assert not isinstance(source, Examples)
    table = tables(source, format)[0]
    names: list[str] = []

    def remember(columns: list[str]) -> list[str]:
        names.extend(columns)
        return columns

    next(table.read(remember), None)
    return table.name, names
