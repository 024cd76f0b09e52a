"""Documents from files, for an index: a text file is one, a table has one a row, whose other columns describe it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from munjang.data.columns import choose_text
from munjang.data.files import label, open_bytes
from munjang.data.rows import Broken
from munjang.data.tables import format_of, place, read_rows
from munjang.errors import InputError, unknown

Value = str | int | float | bool | None
PROSE_SUFFIXES = (".txt", ".md", ".rst", ".text")  # read whole: their lines are no rows
ID_COLUMNS = ("id", "_id", "doc_id", "document_id", "corpus_id")
KINDS = {"text": str, "int": int, "float": float, "bool": lambda text: {"true": True, "false": False}[text.lower()]}


@dataclass(frozen=True)
class Section:
    """Where a part of a document begins, and what is known about it alone, such as its page."""

    start: int
    metadata: Mapping[str, Value]


@dataclass(frozen=True)
class Document:
    """A text with a name, if it has one, and what is known about it."""

    text: str
    id: str | None = None
    metadata: Mapping[str, Value] = field(default_factory=dict)
    sections: Sequence[Section] = ()


@dataclass(frozen=True)
class Reading:
    """Settings for reading tables. `kinds`: the type of columns in files that hold only text, such as year -> int."""

    column: str | None = None
    id_column: str | None = None
    fields: Sequence[str] | None = None  # of the metadata; None: all other columns
    kinds: Mapping[str, str] = field(default_factory=dict)
    is_lines: bool = False  # a .txt has a document a line


def read_documents(paths: Sequence[str], reading: Reading | None = None) -> Iterator[Document]:
    """Yield every document of files and folders, in order."""
    how = reading or Reading()
    for kind in how.kinds.values():
        if kind not in KINDS:
            raise unknown("type of a field", kind, KINDS)
    for path in list_files(paths, PROSE_SUFFIXES):
        is_prose = Path(path).suffix.lower() in PROSE_SUFFIXES and not how.is_lines
        yield from read_prose(path) if is_prose else _rows(path, how)


def list_files(paths: Sequence[str], suffixes: Sequence[str]) -> Iterator[str]:
    """Yield files, and of folders those that end in one of the suffixes or are tables."""
    for path in paths:
        if not Path(path).is_dir():
            yield path
            continue
        found = sorted(each for each in Path(path).rglob("*") if each.is_file() and not each.name.startswith("."))
        known = [str(each) for each in found if each.suffix.lower() in suffixes or _is_table(each)]
        if not known:
            raise InputError(f"{path}: there are no texts and no tables in this folder")
        yield from known


def _is_table(path: Path) -> bool:
    try:
        return bool(format_of(path))
    except InputError:
        return False


def read_prose(path: str) -> Iterator[Document]:
    """Yield the document that a text file is; nothing if it is blank."""
    with open_bytes(path) as file:
        try:
            text = file.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{label(path)}: not UTF-8 (byte {error.start}); convert it first") from None
    if text.strip():
        yield Document(text, path, {"source": path})


def _rows(path: str, how: Reading) -> Iterator[Document]:
    names: list[str] = []

    def choose(columns: list[str]) -> list[str]:
        (text,) = choose_text(label(path), how.column, columns)
        by_name = [column for column in columns if column.lower() in ID_COLUMNS]
        id_column = how.id_column or (by_name[0] if by_name else None)
        if id_column is not None and id_column not in columns:
            raise InputError(f"{label(path)} has no column {id_column!r}; its columns are {', '.join(columns)}")
        others = how.fields
        if others is None:
            others = [column for column in columns if column not in (text, id_column)]
        for name in others:
            if name not in columns:
                raise unknown(f"column of {label(path)}", name, columns)
        names[:] = [text, id_column or "", *others]
        return [name for name in names if name]

    for where, values in read_rows(path, choose):
        here = place(path, where)
        if isinstance(values, Broken):
            raise InputError(f"{here}: {values.reason}")
        text, *rest = values
        id = str(rest.pop(0)) if names[1] else None
        if not isinstance(text, str):
            raise InputError(f"{here}: {names[0]!r} is {text!r:.40}, not a text")
        metadata = {name: _value(here, name, value, how) for name, value in zip(names[2:], rest, strict=True)}
        yield Document(text, id, {name: value for name, value in metadata.items() if value is not None})


def _value(here: str, name: str, value: object, how: Reading) -> Value:
    kind = how.kinds.get(name)
    if value is None or (value == "" and kind not in (None, "text")):
        return None
    if kind is not None and isinstance(value, str):
        try:
            made: Value = KINDS[kind](value)  # type: ignore[operator]  # each is a function of a text
        except (ValueError, KeyError):
            raise InputError(f"{here}: {name!r} is {value!r:.40}, not {kind}") from None
        return made
    if isinstance(value, (str, int, float, bool)):
        return value
    raise InputError(f"{here}: {name!r} is a {type(value).__name__}; text, numbers, true and false can be stored")
