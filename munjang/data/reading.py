"""Examples from files: every row is checked before the first one is used."""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

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
    """The columns that the caller asked for, and how their values are read."""

    texts: Sequence[str] | None
    label: str | None
    score: str | Sequence[str] | None
    target: str | None
    num_texts: tuple[int, int | None]
    labels: Sequence[str] | None = None
    score_range: tuple[float, float] | None = None
    max_rows: int | None = None
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
    wanted = Columns(texts, label, score, target, num_texts, labels, score_range, max_rows, split)
    reader = Reader.of(source, wanted, format)
    (rows,) = reader.blocks(None)
    return reader.examples(rows)


@dataclass(frozen=True)
class Reader:
    """The tables of a source, and what is read of them: at once, or so many rows at a time."""

    tables: list[Table]
    wanted: Columns

    @classmethod
    def of(cls, source: Sources, wanted: Columns, format: str | None = None) -> "Reader":
        """Check the options, and find the tables."""
        if wanted.target is not None and wanted.target not in TARGETS:
            raise unknown("target", wanted.target, TARGETS)
        if wanted.max_rows is not None and wanted.max_rows < 1:
            raise InputError(f"max_rows has to be at least 1, not {wanted.max_rows}")
        if wanted.texts is not None:
            names = [wanted.texts] if isinstance(wanted.texts, str) else list(wanted.texts)
            least, most = wanted.num_texts
            if not least <= len(names) <= (most or len(names)) or len(set(names)) < len(names):
                are_wanted = f"{counted(wanted.num_texts)} different columns are wanted"
                raise InputError(f"texts names {', '.join(names)}; {are_wanted}")
            wanted = replace(wanted, texts=names)
        return cls(tables(source, format, wanted.split), wanted)

    @property
    def name(self) -> str:
        """Return what errors and reports call the tables."""
        return name_of(self.tables)

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Return the range that is declared, or that of a published dataset; None: by the values."""
        if self.wanted.score_range is not None:
            return self.wanted.score_range
        ranges = {None if table.shape is None else table.shape.score_range for table in self.tables}
        return ranges.pop() if len(ranges) == 1 else None

    def blocks(self, num_rows: int | None, first: int = 0) -> Iterator[Rows]:
        """Yield all rows, `num_rows` at a time (None: at once), from the block `first` on."""
        named, rows, number, seen = Rows(), Rows(), 0, 0
        for place, table in enumerate(self.tables):

            def choose(columns: list[str], name: str = table.name) -> list[str]:
                if not named.names:
                    _choose(name, self.wanted, columns, named)
                return found(name, named.names, columns)

            rows.starts.append(len(rows.values))
            for where, values in table.read(choose):
                # of a whole table, the rows of a split are chosen first
                if seen == self.wanted.max_rows and (num_rows is not None or not named.split):
                    break
                if len(rows.values) == num_rows:
                    if number >= first:
                        yield _under(named, rows)
                    number, rows = number + 1, Rows(starts=[0] * (place + 1))
                if isinstance(values, Broken):
                    rows.problems[len(rows.values)] = values.reason
                    values = []
                rows.values.append(values)
                rows.where.append(where)
                seen += 1
        if number >= first and (rows.values or num_rows is None):
            yield _under(named, rows)

    def examples(self, rows: Rows, is_part: bool = False) -> Examples:
        """Check rows and read their values. `is_part`: of a source of which other rows are not known here."""
        name, wanted = self.name, self.wanted
        if not rows.values:
            raise InputError(f"{name} has no rows")
        notes = list(dict.fromkeys(note for table in self.tables for note in table.notes))
        notes += [f"columns not used: {', '.join(rows.unused)}"] if rows.unused else []
        notes += _keep_split(name, rows, wanted.split, wanted.max_rows, is_part)
        if all(table.shape is not None and table.shape.drops_blank for table in self.tables):
            notes += _drop_blank(rows)
        score_range = self.score_range if rows.scores else wanted.score_range
        columns = _check_texts(rows)
        classes = Classes(np.zeros(0, np.int64), ())
        if rows.label:
            classes = number_classes(rows.column(len(rows.texts)), wanted.labels, rows.problems)
            notes += classes.notes
        are_candidates = not isinstance(wanted.score, (str, type(None)))
        scores = _read_scores(name, rows, are_candidates, score_range, notes)
        _raise_problems(name, self.tables, rows, classes.dropped)
        numbers = classes.numbers if rows.label else None
        examples = Examples(name, columns, tuple(rows.texts), numbers, classes.names, scores, tuple(notes))
        kept = [row for row in range(len(examples)) if row not in classes.dropped]
        if not kept and not is_part:
            raise InputError(f"{name} has no rows but those labelled '-'")
        return examples.take(kept) if classes.dropped else examples


def _under(named: Rows, rows: Rows) -> Rows:
    """Return rows with the names of their columns, and with blanks for what is broken."""
    blank: list[object] = [None] * len(named.names)
    values = [row or blank for row in rows.values]
    return replace(named, values=values, where=rows.where, starts=rows.starts, problems=rows.problems)


def drop_overlap(examples: Examples, others: Iterable[Examples]) -> Examples:
    """Drop the examples that share a sentence with any of the others, compared without case and outer white space.

    Training must not see what is evaluated on.
    """
    seen = overlaps(examples, folded_texts(others))
    if seen.all():
        raise InputError(f"{examples.name}: every row shares a sentence with the data that is evaluated on")
    note = f"{int(seen.sum()):,} of {len(examples):,} rows dropped that share a sentence with the evaluation data"
    return examples.take(np.flatnonzero(~seen)).noted(note)


def folded_texts(others: Iterable[Examples]) -> set[str]:
    """Return all texts in the form in which they are compared."""
    return {folded(text) for other in others for column in other.texts for text in column}


def overlaps(examples: Examples, held_out: Container[str]) -> NDArray[np.bool_]:
    """Tell which rows have a text among the held-out ones."""
    seen = np.zeros(len(examples), np.bool_)
    for column in examples.texts:
        seen |= np.fromiter((folded(text) in held_out for text in column), np.bool_, len(column))
    return seen


def folded(text: str) -> str:
    """Normalise a text for comparison: no case, outer white space or differences of encoding."""
    return unicodedata.normalize("NFC", text.strip()).casefold()


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


def _keep_split(name: str, rows: Rows, split: str | None, max_rows: int | None, is_part: bool) -> list[str]:
    """Keep the rows of one split, where a column has several; return a note of it."""
    if not rows.split or split is None:
        return []
    at, total = len(rows.names) - 1, len(rows.values)
    stated = [SPLITS.get(str(row[at]).strip().lower(), str(row[at])) for row in rows.values]
    kept = [row for row, value in enumerate(stated) if value == split]
    if is_part:  # whether other rows have other splits is not known, so the column decides
        rows.keep(kept)
        return []
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
