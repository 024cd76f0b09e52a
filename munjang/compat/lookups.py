"""Resolve ids of a dataset into texts of others while training: `train.set_transform(resolve_ids({...}))`.

>>> from datasets import Dataset
>>> documents = Dataset.from_dict({"document_id": ["a", "b"], "text": ["A cat.", "A dog."]})
>>> resolve_ids({"document_ids": documents})({"document_ids": [["b", "a"]]})
{'document_1': ['A dog.'], 'document_2': ['A cat.']}
"""

import ast
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from munjang.errors import MissingExtra

logger = logging.getLogger(__name__)
LABEL_COLUMNS = ("label", "labels", "score", "scores")
MAX_KEY_BYTES = 128  # an array of strings is as wide as its longest; beyond this a dict is smaller
ROWS_AT_ONCE = 50_000
ONE_OF_MANY = {"_ids": "", "_id": "", "_idx": ""}
MANY = {"y_ids": "ies", "_ids": "s", "_id": "", "_idx": ""}


class _SortedIdIndex:
    """The row of each id, as sorted arrays: a fraction of a dict's memory, and quick to pickle for workers."""

    def __init__(self, ids: Any) -> None:
        order = np.argsort(ids, kind="stable")
        keys = ids[order]
        is_last = np.append(keys[1:] != keys[:-1], True)[: len(keys)]  # of equal ids the last row counts
        self.keys, self.positions = keys[is_last], order[is_last]

    def __len__(self) -> int:
        return len(self.keys)

    def lookup(self, ids: Any) -> Any:
        """Return the rows of ids; a KeyError names the first that is not there."""
        if not len(self.keys):
            raise KeyError(ids[0].item())
        places = np.minimum(np.searchsorted(self.keys, ids), len(self.keys) - 1)
        is_found = self.keys[places] == ids
        if not is_found.all():
            raise KeyError(ids[int(np.argmin(is_found))].item())
        return self.positions[places]


Index = _SortedIdIndex | dict[Any, int]


class Resolution(NamedTuple):
    """What resolves a column: the texts, their rows by id, and the names that come out."""

    texts: Any
    rows: Index
    text_column: str
    name: str
    plural: str


@dataclass
class _Lookup:
    dataset: Any
    id_column: str
    text_column: str


def resolve_ids(
    lookups: dict[str, Any],
    keep_columns: Sequence[str] = LABEL_COLUMNS,
    max_list_length: int | None = None,
    output_format: str = "columns",
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function of a batch for `set_transform` or `map(..., batched=True)` that puts texts in the place of ids.

    A lookup is a dataset, (dataset, id column) or (dataset, id column, text column). A list of ids becomes numbered
    columns, or with output_format="lists" one column of lists, which may differ in length.
    """
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("datasets", "compat-train", "resolve_ids") from error
    if isinstance(keep_columns, str):
        raise TypeError(f"keep_columns must be a list or tuple of column names, got the string {keep_columns!r}.")
    if max_list_length is not None and max_list_length < 1:
        raise ValueError(f"max_list_length must be a positive integer or None, got {max_list_length}.")
    if output_format not in ("columns", "lists"):
        raise ValueError(f'output_format must be "columns" or "lists", got {output_format!r}.')
    indexes: dict[tuple[int, str], Index] = {}
    resolutions = {}
    for column, given in lookups.items():
        lookup = _checked(datasets, column, given)
        key = (id(given[0] if isinstance(given, tuple) else given), lookup.id_column)
        if key not in indexes:
            indexes[key] = _index(lookup, column)
        texts = lookup.dataset.select_columns([lookup.text_column])
        names = _renamed(column, ONE_OF_MANY), _renamed(column, MANY)
        resolutions[column] = Resolution(texts, indexes[key], lookup.text_column, *names)
    return partial(
        _resolve,
        resolutions=resolutions,
        keep_columns=tuple(keep_columns),
        max_list_length=max_list_length,
        as_columns=output_format == "columns",
    )


def _checked(datasets: Any, column: str, given: Any) -> _Lookup:
    """Return the dataset of a lookup with its columns, found by their names where none are given."""
    where = f"lookups[{column!r}]"
    parts = given if isinstance(given, tuple) else (given, None)
    if len(parts) not in (2, 3):
        raise ValueError(
            f"{where} must be a Dataset, (dataset, id_col), or (dataset, id_col, value_col), "
            f"got a tuple of length {len(parts)}."
        )
    dataset, id_column, text_column = (*parts, None)[:3]
    if isinstance(dataset, datasets.DatasetDict):
        raise TypeError(f"{where} holds a `DatasetDict`, expected a `Dataset`: give one split, such as data['train'].")
    if not isinstance(dataset, datasets.Dataset):
        raise TypeError(f"{where} must hold a `Dataset`, got {type(dataset).__name__}.")
    dataset = dataset.with_format(None)  # a tensor can't be a key
    names = dataset.column_names
    tuple_hint = f"Pass an explicit tuple: (dataset, id_col) or (dataset, id_col, value_col). Columns: {sorted(names)}."
    if id_column is None:
        found = [name for name in names if name == "id" or name.endswith("_id")]
        if len(found) != 1:
            raise ValueError(f"Cannot infer the ID column of {where} among {found or 'none'}. {tuple_hint}")
        id_column = found[0]
    if text_column is None and id_column in names:
        found = [name for name in names if name != id_column]
        if len(found) != 1:
            raise ValueError(f"Cannot infer the value column of {where} among {found or 'none'}. {tuple_hint}")
        text_column = found[0]
    for kind, name in (("ID", id_column), ("value", text_column)):
        if name not in names:
            raise ValueError(f"{where}: {kind} column {name!r} is not a column of the lookup dataset: {sorted(names)}.")
    return _Lookup(dataset, id_column, str(text_column))


def _index(lookup: _Lookup, column: str) -> Index:
    ids: list[Any] = []
    for rows in lookup.dataset.select_columns([lookup.id_column]).iter(batch_size=ROWS_AT_ONCE):
        ids.extend(rows[lookup.id_column])
    keys = np.asarray(ids)
    is_sortable = keys.ndim == 1 and keys.dtype.kind in "iufUS" and keys.itemsize <= MAX_KEY_BYTES
    index = _SortedIdIndex(keys) if is_sortable else {key: row for row, key in enumerate(ids)}
    if len(index) < len(ids):
        logger.warning(
            "lookups[%r] contains duplicate %r values (%d rows); the last of each counts.",
            *(column, lookup.id_column, len(ids) - len(index)),
        )
    return index


def _renamed(column: str, ends: dict[str, str]) -> str:
    end = next((end for end in ends if column.endswith(end)), "")
    return column.removesuffix(end) + ends.get(end, "")


def _resolve(
    batch: dict[str, Any],
    resolutions: dict[str, Resolution],
    keep_columns: tuple[str, ...],
    max_list_length: int | None,
    as_columns: bool,
) -> dict[str, Any]:
    if not isinstance(batch, Mapping):
        raise TypeError(f"resolve_ids expects columns, got {type(batch).__name__}. Call dataset.with_format(None).")
    resolved: dict[str, Any] = {}
    for column, resolution in resolutions.items():
        rows = _plain(batch[column], column)
        if rows and isinstance(rows[0], (list, tuple)):
            rows = [row[:max_list_length] for row in rows]
            texts = iter(_take([key for row in rows for key in row], resolution, column))
            lists = [[next(texts) for _ in row] for row in rows]
            made = _numbered(lists, resolution.name, column) if as_columns else {resolution.plural: lists}
        else:
            made = {resolution.name: _take(rows, resolution, column)}
        for name, values in made.items():
            _put(resolved, name, values)
    for name in keep_columns:
        if name in batch:
            values = batch[name]
            if isinstance(values, list) and values and _is_spelled(values[0]):
                values = _parsed(values, name)
            is_lists = max_list_length is not None and len(values) and hasattr(values[0], "__len__")
            is_cut = is_lists and not isinstance(values[0], str) and getattr(values[0], "ndim", 1) > 0
            _put(resolved, name, [row[:max_list_length] for row in values] if is_cut else values)
    return resolved


def _plain(rows: Any, column: str) -> list[Any]:
    if not isinstance(rows, list):
        raise TypeError(
            f"Input column {column!r} holds a {type(rows).__name__} rather than a list: the train dataset carries a "
            "format. Call dataset.with_format(None) before applying the transform."
        )
    return _parsed(rows, column) if rows and _is_spelled(rows[0]) else rows


def _is_spelled(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("[")


def _parsed(rows: list[Any], column: str) -> list[Any]:
    """Return lists that are written as strings, as some published datasets have them."""
    values = []
    for row in rows:
        try:
            value = ast.literal_eval(row)
        except (ValueError, SyntaxError) as error:
            raise ValueError(f"Column {column!r} holds string-encoded lists; {row[:100]!r} is none: {error}") from None
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"Column {column!r} holds string-encoded lists; {row[:100]!r} is none.")
        values.append(list(value))
    return values


def _take(ids: list[Any], resolution: Resolution, column: str) -> list[Any]:
    """Return the texts of ids."""
    if not ids:
        return []
    try:
        if isinstance(resolution.rows, dict):
            rows = [resolution.rows[key] for key in ids]
        else:
            keys = np.asarray(ids)
            if keys.dtype.kind != resolution.rows.keys.dtype.kind:
                raise KeyError(ids[0])
            rows = resolution.rows.lookup(keys).tolist()
    except TypeError:
        raise TypeError(f"IDs from input column {column!r} are not hashable. Call dataset.with_format(None).") from None
    except KeyError as error:
        key = error.args[0]
        hint = " It looks like a string-encoded list: convert the column to lists first." if _is_spelled(key) else ""
        raise KeyError(f"ID {key!r} from input column {column!r} was not found in its lookup dataset.{hint}") from None
    texts: list[Any] = resolution.texts[rows][resolution.text_column]
    return texts


def _numbered(lists: list[list[Any]], name: str, column: str) -> dict[str, list[Any]]:
    lengths = {len(row) for row in lists}
    if len(lengths) > 1:
        raise ValueError(
            f"Rows of input column {column!r} hold lists of differing lengths {sorted(lengths)}, which can't become "
            'columns. Set max_list_length to cap them, or output_format="lists" to keep them as lists.'
        )
    if lengths == {0}:
        raise ValueError(f"Rows of input column {column!r} hold empty ID lists: filter them out of the dataset.")
    return {f"{name}_{place + 1}": list(values) for place, values in enumerate(zip(*lists, strict=True))}


def _put(resolved: dict[str, Any], name: str, values: Any) -> None:
    if name in resolved:
        raise ValueError(f"Output column {name!r} is produced more than once: rename an input column.")
    resolved[name] = values
