"""Read the rows of objects that people hold: DataFrames, Arrow tables, datasets, lists of tuples or of dicts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from munjang.data.labels import NO_AGREEMENT
from munjang.data.rows import Broken, Choose, Row, json_values
from munjang.errors import InputError

BATCH_ROWS = 4096
# What a tuple's fields are called: two texts, or two and a number, or more texts
PAIR = ("sentence1", "sentence2")
Held: TypeAlias = Any  # a table with named columns, or a list of rows


def is_held(source: object) -> bool:
    """Tell whether this is an object with rows, not the name of a file or a list of names."""
    if isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
        return bool(source) and isinstance(source[0], (tuple, list, Mapping))
    return hasattr(source, "column_names") or hasattr(source, "columns")


def held_rows(source: Held, choose: Choose) -> Iterator[Row]:
    """Yield the chosen columns of an object."""
    if isinstance(source, Sequence):
        if isinstance(source[0], Mapping):
            return _dicts(source, choose)
        return _tuples(source, choose)
    if hasattr(source, "features") and hasattr(source, "select_columns"):
        return dataset_rows(source, choose)
    return _columns(source, choose)


def name_held(source: Held) -> str:
    """Return what errors and reports call an object.

    >>> name_held([("a", "b")])
    'list of 1 rows'
    """
    return f"{type(source).__name__} of {len(source):,} rows"


def dataset_rows(rows: Any, choose: Choose) -> Iterator[Row]:
    """Read a `datasets.Dataset`: classes, which it stores as numbers, by their names."""
    names = choose(list(rows.column_names))
    classes = {column: list(getattr(rows.features[column], "names", None) or ()) for column in names}
    where = 0
    for batch in rows.select_columns(names).iter(batch_size=BATCH_ROWS):
        columns = [  # -1 is SNLI's "no agreement"
            [named[value] if value != -1 else NO_AGREEMENT for value in batch[column]] if named else batch[column]
            for column, named in classes.items()
        ]
        for values in zip(*columns, strict=True):
            yield where, list(values)
            where += 1


def _dicts(rows: Sequence[Mapping[str, object]], choose: Choose) -> Iterator[Row]:
    names = choose(list(rows[0]))
    for where, row in enumerate(rows):
        is_dict = isinstance(row, Mapping)
        yield where, json_values(dict(row), names) if is_dict else Broken(f"a {type(row).__name__}, not a dict")


def _tuples(rows: Sequence[Sequence[object]], choose: Choose) -> Iterator[Row]:
    columns = _names(rows[0])
    places = [columns.index(name) for name in choose(columns)]
    for where, row in enumerate(rows):
        if not isinstance(row, (tuple, list)) or len(row) != len(columns):
            size = len(row) if isinstance(row, (tuple, list)) else 1
            yield where, Broken(f"{size} fields, but the first row has {len(columns)}")
        else:
            yield where, [row[place] for place in places]


def _names(row: Sequence[object]) -> list[str]:
    """Name the fields of a tuple by what they hold; texts first, then a score (a float) or a label."""
    texts = [value for value in row if isinstance(value, str)]
    if not texts or any(isinstance(value, str) for value in row[len(texts) :]) or len(row) > len(texts) + 1:
        raise InputError(
            f"A tuple of {', '.join(type(value).__name__ for value in row)} is not clear; give texts first, then a "
            "score (float) or a label (int), or dicts with named columns"
        )
    known = {1: ["text"], 2: list(PAIR)}
    several = ["anchor", "positive", *(f"negative_{number}" for number in range(1, len(texts) - 1))]
    target = ["score" if isinstance(value, float) else "label" for value in row[len(texts) :]]
    return [*known.get(len(texts), several), *target]


def _columns(table: Any, choose: Choose) -> Iterator[Row]:
    """Read pandas, polars or Arrow, column by column."""
    named = list(getattr(table, "column_names", None) or table.columns)
    names = choose([str(name) for name in named])
    chosen = [table[name] for name in names]
    columns = [column.to_pylist() if hasattr(column, "to_pylist") else column.to_list() for column in chosen]
    yield from enumerate(map(list, zip(*columns, strict=True)))
