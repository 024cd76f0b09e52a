"""Define a published shape: how a file of a well-known dataset is told, and read into columns with known names."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from munjang.data.files import COMPRESSIONS, STDIN, open_bytes
from munjang.data.rows import Source
from munjang.errors import InputError

HEAD_BYTES = 1 << 16
SPLITS = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "trial": "dev", "test": "test"}
SPLIT_IN_NAME = re.compile(r"(?<![a-z])(train|dev|valid|validation|trial|test)(?![a-z])|(trec_10)(?!\d)")

# Where a row was, and its fields; the first row names the columns.
Fields: TypeAlias = Iterator[tuple[int, Sequence[object]]]


@dataclass(frozen=True)
class Head:
    """The name of a file and how it begins: enough to tell its shape."""

    path: Path
    content: str  # the first HEAD_BYTES, decoded

    @cached_property
    def name(self) -> str:
        """Its name in lower case, without the suffix of a compression."""
        return plain_name(self.path)

    @cached_property
    def lines(self) -> list[str]:
        """The first lines."""
        return self.content.lstrip("\ufeff").split("\n")[:8]

    def fields(self, separator: str = "\t", line: int = 0) -> list[str]:
        """Return the fields of a line, without quotes around them."""
        if line >= len(self.lines):
            return []
        return [field.strip().strip('"') for field in self.lines[line].rstrip("\r").split(separator)]

    def has_header(self, *names: str, separator: str = "\t") -> bool:
        """Tell whether the first line names all of these columns."""
        return set(names) <= {field.lower() for field in self.fields(separator)}


@dataclass(frozen=True)
class Shape:
    """Files of one dataset, or of several that are written alike. To add one: a function, a line in PUBLISHED."""

    title: str  # of the datasets
    files: str  # their names, for people
    tells: Callable[[Head], bool]
    read: Callable[[Source], Fields]
    score_range: tuple[float, float] | None = None
    drops_blank: bool = False  # the published file has rows without a text, which nobody uses
    evaluates: str | None = None  # the kind of evaluation, where columns alone do not tell it
    folds: int | None = None  # of cross-validation, in which a dataset without a split is measured
    partner: Callable[[Path], Path] | None = None  # a second file that `read` reads too


def head_of(path: Source) -> Head | None:
    """Read the beginning of a file; None for standard input, pipes and what is not there."""
    if os.fspath(path) == STDIN or not Path(path).is_file():
        return None
    try:
        with open_bytes(path) as file:
            content = file.read(HEAD_BYTES)
    except (EOFError, OSError, ValueError):  # a damaged archive: whoever reads it says so
        return None
    return Head(Path(path), decode(content))


def plain_name(path: Source) -> str:
    """Return a file's name in lower case, without the suffix of a compression.

    >>> plain_name("SNLI/snli_1.0_train.JSONL.gz")
    'snli_1.0_train.jsonl'
    """
    name = Path(path).name.lower()
    return name.rpartition(".")[0] if Path(name).suffix in COMPRESSIONS else name


def split_of(path: Source) -> str | None:
    """Return the split that a file's name states: train, dev, test or None.

    >>> split_of("klue-sts-v1.1_dev.json"), split_of("TREC_10.label"), split_of("ratings.txt")
    ('dev', 'test', None)
    """
    stated = {SPLITS.get(word, "test") for pair in SPLIT_IN_NAME.findall(plain_name(path)) for word in pair if word}
    return stated.pop() if len(stated) == 1 else None


def decode(content: bytes) -> str:
    """Decode UTF-8, else Latin-1, in which some of the oldest sets are written."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_cut = len(content) == HEAD_BYTES and error.start > len(content) - 4
        return content[: error.start].decode("utf-8-sig") if is_cut else content.decode("latin-1")


def any_lines(path: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file in UTF-8 or, line by line, Latin-1, with their numbers from 1."""
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            yield number, decode(line).rstrip("\r\n")


def beside(path: Source, partner: Path) -> Path:
    """Return the second file of a pair; refuse a first one that came alone."""
    if not partner.is_file():
        raise InputError(f"{path} is half of a dataset; {partner.name} has to be in the same folder")
    return partner


def is_number(text: str, low: float = float("-inf"), high: float = float("inf")) -> bool:
    """Tell whether a field is a number within bounds."""
    try:
        return low <= float(text) <= high
    except ValueError:
        return False
