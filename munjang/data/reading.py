"""Examples from files: every row is checked before the first one is used."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from munjang.data.columns import SPLIT_COLUMNS, choose_label, choose_scores, choose_texts, counted, found
from munjang.data.examples import Examples
from munjang.data.labels import Classes, number_classes
from munjang.data.published.shape import SPLITS
from munjang.data.rows import Broken
from munjang.data.scores import as_list, read_candidates, read_lists, read_scores, scale
from munjang.data.sources import Sources, Table, name_of, tables
from munjang.errors import InputError, unknown
from munjang.types import Doubles

MAX_LISTED_PROBLEMS = 20
TARGETS = ("labels", "scores")


@dataclass(frozen=True)
class Columns:
    """The columns that the caller asked for."""

    texts: Sequence[str] | None
    label: str | None
    score: str | Sequence[str] | None
    target: str | None
    num_texts: tuple[int, int | None]
    split: str | None = None


@dataclass
class Rows:
    """Values of the chosen columns, and where every row was."""

    texts: list[str] = field(default_factory=list)  # names
    label: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)
    split: list[str] = field(default_factory=list)  # only if one is wanted
    unused: list[str] = field(default_factory=list)
    values: list[list[object]] = field(default_factory=list)  # row by row
    where: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # first row of each table
    problems: dict[int, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*self.texts, *self.label, *self.scores, *self.split]

    def keep(self, kept: list[int]) -> None:
        """Keep some rows, and what is known about them."""
        self.problems = {new: self.problems[old] for new, old in enumerate(kept) if old in self.problems}
        self.starts = [bisect_left(kept, start) for start in self.starts]
        self.values, self.where = [self.values[row] for row in kept], [self.where[row] for row in kept]

    def column(self, at: int) -> list[object]:
        return [row[at] for row in self.values]


def read_examples(
    source: Sources,
    *,
    texts: Sequence[str] | None = None,
    label: str | None = None,
    score: str | Sequence[str] | None = None,
    target: str | None = None,
    num_texts: tuple[int, int | None] = (1, None),
    labels: Sequence[str] | None = None,
    score_range: tuple[float, float] | None = None,
    format: str | None = None,
    max_rows: int | None = None,
    split: str | None = None,
) -> Examples:
    """Read examples of a file, a folder, a list of files or `hub:owner/name`; columns are found by name if not given.

    `target` says what is wanted beside the texts: "labels", "scores" or None. Classes are numbered by their sorted
    names, or in the order of `labels`. Scores of pairs are scaled from `score_range` to 0..1; of several columns of
    scores, or of a column of lists, one is each candidate's, and they stay as they are. `split` takes the rows of one
    split ("train", "dev", "test") of a table with such a column, or of a folder whose files are named after them.

    `read_examples("snli-train.tsv.xz", target="labels").label_names` is `('contradiction', 'entailment', 'neutral')`.
    """
    if target is not None and target not in TARGETS:
        raise unknown("target", target, TARGETS)
    if max_rows is not None and max_rows < 1:
        raise InputError(f"max_rows has to be at least 1, not {max_rows}")
    if texts is not None:
        texts = [texts] if isinstance(texts, str) else list(texts)
        if not num_texts[0] <= len(texts) <= (num_texts[1] or len(texts)) or len(set(texts)) < len(texts):
            raise InputError(f"texts names {', '.join(texts)}; {counted(num_texts)} different columns are wanted")
    found_tables = tables(source, format, split)
    name = name_of(found_tables)
    rows = _gather(found_tables, Columns(texts, label, score, target, num_texts, split), max_rows)
    if not rows.values:
        raise InputError(f"{name} has no rows")
    notes = list(dict.fromkeys(note for table in found_tables for note in table.notes))
    notes += [f"columns not used: {', '.join(rows.unused)}"] if rows.unused else []
    notes += _keep_split(name, rows, split, max_rows)
    shapes = [table.shape for table in found_tables]
    if all(shape is not None and shape.drops_blank for shape in shapes):
        notes += _drop_blank(rows)
    if score_range is None and rows.scores:
        ranges = {None if shape is None else shape.score_range for shape in shapes}
        score_range = ranges.pop() if len(ranges) == 1 else None
    columns = _check_texts(rows)
    classes = Classes(np.zeros(0, np.int64), ())
    if rows.label:
        classes = number_classes(rows.column(len(rows.texts)), labels, rows.problems)
        notes += classes.notes
    scores = _read_scores(name, rows, not isinstance(score, (str, type(None))), score_range, notes)
    _raise_problems(name, found_tables, rows, classes.dropped)
    numbers = classes.numbers if rows.label else None
    examples = Examples(name, columns, tuple(rows.texts), numbers, classes.names, scores, tuple(notes))
    if not classes.dropped:
        return examples
    kept = [row for row in range(len(examples)) if row not in classes.dropped]
    if not kept:
        raise InputError(f"{name} has no rows but those labelled '-'")
    return examples.take(kept)


def drop_overlap(examples: Examples, others: Iterable[Examples]) -> Examples:
    """Drop the examples that share a sentence with any of the others, compared without case and outer white space.

    Training must not see what is evaluated on.
    """
    held_out = {folded(text) for other in others for column in other.texts for text in column}
    seen = np.zeros(len(examples), bool)
    for column in examples.texts:
        seen |= np.fromiter((folded(text) in held_out for text in column), bool, len(column))
    if seen.all():
        raise InputError(f"{examples.name}: every row shares a sentence with the data that is evaluated on")
    note = f"{int(seen.sum()):,} of {len(examples):,} rows dropped that share a sentence with the evaluation data"
    return examples.take(np.flatnonzero(~seen)).noted(note)


def folded(text: str) -> str:
    """Normalise a text for comparison: no case, outer white space or differences of encoding."""
    return unicodedata.normalize("NFC", text.strip()).casefold()


def _gather(found_tables: list[Table], wanted: Columns, max_rows: int | None) -> Rows:
    rows = Rows()
    for table in found_tables:

        def choose(columns: list[str], name: str = table.name) -> list[str]:
            if not rows.names:
                _choose(name, wanted, columns, rows)
            return found(name, rows.names, columns)

        rows.starts.append(len(rows.values))
        for where, values in table.read(choose):
            if max_rows is not None and len(rows.values) >= max_rows and not rows.split:
                break
            if isinstance(values, Broken):
                rows.problems[len(rows.values)] = values.reason
                values = []
            rows.values.append(values)
            rows.where.append(where)
    blank: list[object] = [None] * len(rows.names)
    rows.values = [values or blank for values in rows.values]
    return rows


def _choose(name: str, wanted: Columns, columns: list[str], rows: Rows) -> None:
    rows.texts = choose_texts(name, wanted.texts, columns, wanted.num_texts)
    if wanted.target == "labels" or wanted.label is not None:
        rows.label = choose_label(name, wanted.label, columns)
    if wanted.target == "scores" or wanted.score is not None:
        rows.scores = choose_scores(name, wanted.score, columns)
    if wanted.split is not None:
        rows.split = [column for column in columns if column.strip().lower() in SPLIT_COLUMNS][:1]
    rows.unused = [column for column in columns if column not in rows.names]
    if len(set(rows.names)) < len(rows.names):
        raise InputError(f"{name}: a column can't be two things at once: {', '.join(rows.names)}")


def _keep_split(name: str, rows: Rows, split: str | None, max_rows: int | None) -> list[str]:
    """Keep the rows of one split, where a column has several; return a note of it."""
    if not rows.split or split is None:
        return []
    at, total = len(rows.names) - 1, len(rows.values)
    stated = [SPLITS.get(str(row[at]).strip().lower(), str(row[at])) for row in rows.values]
    kept = [row for row, value in enumerate(stated) if value == split]
    if not kept and len(set(stated)) > 1 and (split not in SPLITS or set(stated) <= {*SPLITS.values()}):
        raise InputError(
            f"{name}: the column {rows.split[0]!r} has the splits {', '.join(sorted(set(stated)))}, not {split!r}; "
            "give one of them as --split (split=)"
        )
    if not kept or len(kept) == total:
        rows.keep(list(range(min(total, total if max_rows is None else max_rows))))
        return []
    rows.keep(kept[:max_rows])
    return [f"{len(kept):,} of {total:,} rows: those of the split {split}"]


def _drop_blank(rows: Rows) -> list[str]:
    """Drop rows without a text, which some published files have; return a note of it."""
    is_blank = [any(not str(value or "").strip() for value in row[: len(rows.texts)]) for row in rows.values]
    if not any(is_blank):
        return []
    rows.keep([row for row, blank in enumerate(is_blank) if not blank])
    return [f"{sum(is_blank):,} rows dropped that have no text"]


def _check_texts(rows: Rows) -> tuple[list[str], ...]:
    columns: list[list[str]] = []
    for at, name in enumerate(rows.texts):
        column = rows.column(at)
        for row, value in enumerate(column):
            if not isinstance(value, str):
                given = "null" if value is None else f"{value!r:.40} ({type(value).__name__}), not a text"
                rows.problems.setdefault(row, f"{name!r} is {given}")
            elif not value or value.isspace():
                rows.problems.setdefault(row, f"{name!r} is {'blank' if value else 'empty'}")
        columns.append(column)  # type: ignore[arg-type]  # anything else is a problem, and an error later
    return tuple(columns)


def _read_scores(
    name: str, rows: Rows, are_candidates: bool, declared: tuple[float, float] | None, notes: list[str]
) -> Doubles | None:
    if not rows.scores:
        return None
    first = len(rows.texts) + len(rows.label)
    columns = [rows.column(at) for at in range(first, first + len(rows.scores))]
    is_list = any(as_list(value) is not None for value in columns[0][:MAX_LISTED_PROBLEMS])
    are_candidates = are_candidates or len(columns) > 1
    if are_candidates or is_list:
        if declared is not None:
            raise InputError(f"{name}: score_range is for one score a row; scores of candidates stay as they are")
        if is_list:
            return read_lists(columns[0], len(rows.texts) - 1, rows.problems)
        if len(columns) != len(rows.texts) - 1:
            raise InputError(
                f"{name}: {len(columns)} columns of scores ({', '.join(rows.scores)}) for {len(rows.texts) - 1} "
                "candidates; every text column but the first needs one"
            )
        return read_candidates(columns, rows.problems)
    scores = read_scores(columns[0], rows.problems)
    if len(rows.texts) != 2 and declared is None:
        return scores
    scaled, note = scale(name, scores, declared, rows.problems)
    notes.append(note)
    return scaled


def _raise_problems(name: str, found_tables: list[Table], rows: Rows, dropped: frozenset[int]) -> None:
    bad = sorted(row for row in rows.problems if row not in dropped)
    if not bad:
        return
    lines = []
    for row in bad[:MAX_LISTED_PROBLEMS]:
        table = found_tables[bisect_right(rows.starts, row) - 1]
        lines.append(f"  {table.place(rows.where[row])}: {rows.problems[row]}")
    if len(bad) > MAX_LISTED_PROBLEMS:
        lines.append(f"  and {len(bad) - MAX_LISTED_PROBLEMS:,} more")
    are = "row is" if len(rows.values) == 1 else "rows is" if len(bad) == 1 else "rows are"
    listed = "\n".join(lines)
    raise InputError(f"{name}: {len(bad):,} of {len(rows.values):,} {are} bad; repair or drop:\n{listed}")
