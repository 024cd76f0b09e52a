"""Labelled texts from tables: every row is checked before the first one is used."""

from collections.abc import Sequence
from typing import Any

from munjang.data.columns import LABEL_COLUMNS, choose_text, found
from munjang.data.files import label as name_of
from munjang.data.rows import Broken
from munjang.data.tables import place, read_rows
from munjang.errors import InputError

MAX_LISTED = 10


def read_labelled(
    paths: Sequence[str], column: str | None = None, label_column: str | None = None, separator: str | None = None
) -> tuple[list[str], list[Any]]:
    """Read texts and labels from tables; columns that are not named are found by their usual names.

    A label is a name or a whole number; with `separator`, or where a .jsonl or .parquet has lists, several of them.
    """
    texts: list[str] = []
    labels: list[Any] = []
    problems: list[str] = []
    for path in paths:

        def choose(columns: list[str], source: str = name_of(path)) -> list[str]:
            labelled = _label_column(source, label_column, columns)
            rest = [name for name in columns if name != labelled]
            return [*choose_text(source, column, rest), labelled]

        for where, values in read_rows(path, choose):
            reason = _problem(values)
            if reason is None and not isinstance(values, Broken):
                text, label = values
                texts.append(str(text))
                labels.append(_several(label, separator))
            else:
                problems.append(f"{place(path, where)}: {reason}")
    if problems:
        more = f" and {len(problems) - MAX_LISTED:,} more" if len(problems) > MAX_LISTED else ""
        shown = "; ".join(problems[:MAX_LISTED])
        raise InputError(f"{len(problems):,} rows are bad; repair or drop them: {shown}{more}")
    if not texts:
        raise InputError(f"{', '.join(map(name_of, paths))}: there are no rows")
    return texts, labels


def _label_column(source: str, given: str | None, columns: list[str]) -> str:
    if given is not None:
        return found(source, [given], columns)[0]
    known = [name for name in columns if name.strip().lower() in LABEL_COLUMNS]
    if len(known) != 1:
        why = f"{', '.join(known)} could be" if known else "no telling name"
        raise InputError(
            f"{source}: which column is the label? Of {', '.join(map(repr, columns))}, {why}. Give --label-column"
        )
    return known[0]


def _problem(values: list[object] | Broken) -> str | None:
    if isinstance(values, Broken):
        return values.reason
    text, label = values
    if not isinstance(text, str) or not text.strip():
        return "the text is empty" if text is None or not str(text).strip() else f"the text is {text!r:.40}"
    if label is None or (isinstance(label, str) and not label.strip()):
        return "the label is empty"
    if not isinstance(label, (str, int, list)):
        return f"the label is {label!r:.40}, neither a name nor a whole number nor a list of them"
    return None


def _several(label: Any, separator: str | None) -> Any:
    if separator is None or not isinstance(label, str):
        return label
    return [name.strip() for name in label.split(separator) if name.strip()]
