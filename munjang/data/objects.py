"""Read the rows of objects that people hold: DataFrames, datasets, lists of tuples or of dicts, and generators."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from munjang.data.labels import NO_AGREEMENT
from munjang.data.rows import Broken, Choose, Row, json_values
from munjang.errors import InputError

BATCH_ROWS = 4096
# What a tuple's fields are called: two texts, or two and a number, or more texts
PAIR = ("sentence1", "sentence2")
Held: TypeAlias = Any  # a table with named columns, or a list of rows
Stream: TypeAlias = Callable[[], Iterable[Any]] | Iterable[Any]  # rows that come one after the other


def is_held(source: object) -> bool:
    """Tell whether this is an object with rows, not the name of a file or a list of names."""
    if isinstance(source, Sequence) and not isinstance(source, (str, bytes)):
        return bool(source) and isinstance(source[0], (tuple, list, Mapping))
    return hasattr(source, "column_names") or hasattr(source, "columns")


def is_stream(source: object) -> bool:
    """Tell whether rows come one after the other: from a function, a generator, an iterable without a length.

    >>> is_stream(lambda: [("a", "b")]), is_stream([("a", "b")])
    (True, False)
    """
    is_sized = hasattr(source, "__len__") or isinstance(source, (str, bytes)) or hasattr(source, "__fspath__")
    return callable(source) or (isinstance(source, Iterable) and not is_sized)


def is_read_once(source: Stream) -> bool:
    """Tell whether rows are gone once they are read, as those of a generator are."""
    return isinstance(source, Iterator)


def stream_rows(source: Stream, choose: Choose) -> Iterator[Row]:
    """Yield the chosen columns of rows that come one after the other: tuples or dicts."""
    rows = iter(source() if callable(source) else source)
    first = next(rows, None)
    if first is None:
        raise InputError(
            f"{name_held(source)} yields no rows"
            + ("; it was read before: give the function that makes it" if is_read_once(source) else "")
        )
    if not isinstance(first, (Mapping, tuple, list)):
        raise InputError(f"{name_held(source)} yields {type(first).__name__}; rows are tuples or dicts")
    whole = chain([first], rows)
    return _dicts(first, whole, choose) if isinstance(first, Mapping) else _tuples(first, whole, choose)


def held_rows(source: Held, choose: Choose) -> Iterator[Row]:
    """Yield the chosen columns of an object."""
    if isinstance(source, Sequence):
        return (_dicts if isinstance(source[0], Mapping) else _tuples)(source[0], source, choose)
    if hasattr(source, "features") and hasattr(source, "select_columns"):
        return dataset_rows(source, choose)
    return _columns(source, choose)


def name_held(source: Held) -> str:
    """Return what errors and reports call an object.

    >>> name_held([("a", "b")])
    'list of 1 rows'
    """
    if is_stream(source):
        return f"rows of {getattr(source, '__name__', type(source).__name__)}"
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


def _dicts(first: Mapping[str, object], rows: Iterable[Any], choose: Choose) -> Iterator[Row]:
    names = choose(list(first))
    for where, row in enumerate(rows):
        is_dict = isinstance(row, Mapping)
        yield where, json_values(dict(row), names) if is_dict else Broken(f"a {type(row).__name__}, not a dict")


def _tuples(first: Sequence[object], rows: Iterable[Any], choose: Choose) -> Iterator[Row]:
    columns = _names(first)
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
