"""Recognise which kind of evaluation some data is for, by what it holds."""

import os

import numpy as np

from munjang.data.columns import LABEL_COLUMNS, SCORE_COLUMNS, choose_texts, is_translated
from munjang.data.examples import Examples
from munjang.data.files import STDIN
from munjang.data.published import Shape
from munjang.data.rows import Broken
from munjang.data.sources import tables
from munjang.errors import InputError
from munjang.evaluation.kinds import KINDS
from munjang.evaluation.kinds.base import Contents, Settings, Source
from munjang.evaluation.kinds.corpus import Retrieval, find, is_retrieval
from munjang.evaluation.kinds.rows import read_rows

HOW = "give --kind (kind=)"
MAX_LISTED_COLUMNS = 8


def recognise(source: "Source | Retrieval", settings: Settings) -> tuple[str, "Source | Retrieval"]:
    """Return the name of the one kind that fits, and the source; or its rows, where they had to be read to tell."""
    shape = None if isinstance(source, (Examples, Retrieval)) else _shape(source, settings)
    if shape is not None and shape.evaluates is not None:
        return shape.evaluates, source
    name, contents, source = _look(source, settings)
    fitting = [kind for kind, row in KINDS.items() if row.fits is not None and row.fits(contents)]
    if len(fitting) == 1:
        return fitting[0], source
    fit = " and ".join(fitting) or "no kind of evaluation"
    raise InputError(f"{name}: rows of {_in_words(contents)} fit {fit}; {HOW}{_hint(contents)}.")


def _look(source: "Source | Retrieval", settings: Settings) -> tuple[str, Contents, "Source | Retrieval"]:
    """Return the name and the contents of the data, and the source or its rows."""
    if isinstance(source, Retrieval):
        return source.name, Contents(tables=frozenset({"qrels"})), source
    if isinstance(source, Examples):
        return source.name, _contents_of(source, settings), source
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
        has = {"qrels": is_retrieval(source), "duplicates": find(source, "duplicates") is not None}
        if any(has.values()):
            return os.fspath(source), Contents(tables=frozenset(name for name in has if has[name])), source
    if isinstance(source, str) and source == STDIN:
        raise InputError(f"Standard input can be read only once, and its kind is not known before; {HOW}.")
    name, columns = _columns(source, settings)
    texts = choose_texts(name, settings.texts, columns, (1, None))
    num_texts = len(texts)
    known = {column.strip().lower() for column in columns}
    has_labels = settings.label is not None or bool(known & set(LABEL_COLUMNS))
    has_scores = settings.score is not None or (settings.label is None and bool(known & set(SCORE_COLUMNS)))
    if num_texts == 2 and has_labels and not has_scores:  # the number of classes tells
        examples = read_rows(source, settings, (2, 2), "labels")
        return name, _contents_of(examples, settings), examples
    contents = Contents(num_texts, has_scores, has_labels, None, _trains(settings), is_translated=is_translated(texts))
    return _seen(name, columns), contents, source


def _contents_of(examples: Examples, settings: Settings) -> Contents:
    num_classes = None
    if examples.labels is not None:
        num_classes = max(len(examples.label_names), len(np.unique(examples.labels)))
    has_scores = examples.scores is not None and settings.label is None
    has_train, is_named = _trains(settings), is_translated(examples.columns)
    has_labels = examples.labels is not None
    return Contents(len(examples.texts), has_scores, has_labels, num_classes, has_train, is_translated=is_named)


def _trains(settings: Settings) -> bool:
    return settings.train is not None or settings.folds is not None


def _in_words(contents: Contents) -> str:
    texts = "1 text" if contents.num_texts == 1 else f"{contents.num_texts} texts"
    if contents.num_classes is not None:
        return f"{texts} and {contents.num_classes} classes"
    has = [name for name, is_there in (("scores", contents.has_scores), ("labels", contents.has_labels)) if is_there]
    return f"{texts} and {' and '.join(has) or 'nothing else'}"


def _hint(contents: Contents) -> str:
    """Say which kinds take two texts alone, which nothing tells apart."""
    is_bare_pair = contents.num_texts == 2 and not contents.has_scores and not contents.has_labels
    return ": translation, if the second text translates the first" if is_bare_pair else ""


def _seen(name: str, columns: list[str]) -> str:
    return f"{name} (columns {', '.join(map(repr, columns[:MAX_LISTED_COLUMNS]))})"


def _shape(source: Source, settings: Settings) -> Shape | None:
    """Return the published shape of a file, where it has one."""
    is_file = isinstance(source, (str, os.PathLike)) and os.path.isfile(source)
    return tables(source, settings.format)[0].shape if is_file else None


def _columns(source: Source, settings: Settings) -> tuple[str, list[str]]:
    """Return a table's name and its columns' names; no more than its head is read."""
    assert not isinstance(source, Examples)
    table = tables(source, settings.format, settings.split)[0]
    names: list[str] = []

    def remember(columns: list[str]) -> list[str]:
        names.extend(columns)
        return columns

    first = next(table.read(remember), None)
    if first is not None and isinstance(first[1], Broken) and not names:
        raise InputError(f"{table.name}, line {first[0]}: {first[1].reason}")
    return table.name, names
