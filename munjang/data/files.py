"""Files in and out: numbered lines from plain or compressed text, and output that appears whole or not at all."""

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, cast

from munjang.errors import InputError

STDIN = "-"
# The standard library's modules, imported on use: a Python built without liblzma lacks one of them.
COMPRESSIONS = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}
BOMS_16 = (b"\xff\xfe", b"\xfe\xff")


def label(path: str | os.PathLike[str]) -> str:
    """Return the name of this input in errors."""
    return "standard input" if os.fspath(path) == STDIN else os.fspath(path)


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open the bytes of a file, decompressed by its suffix; `-` is standard input, which is left open."""
    if os.fspath(path) == STDIN:
        if sys.stdin is None:
            raise InputError("Standard input is closed; give a file, or pipe the texts in")
        yield sys.stdin.buffer
        return
    module = COMPRESSIONS.get(Path(path).suffix.lower())
    with open(path, "rb") if module is None else import_module(module).open(path, "rb") as file:
        yield cast(BinaryIO, file)


def read_lines(path: str | os.PathLike[str], errors: str = "strict") -> Iterator[tuple[int, str]]:
    """Yield lines of UTF-8 text with their numbers from 1, without `\\n` or `\\r\\n`; a byte-order mark is dropped.

    Only `\\n` ends a line. `str.splitlines` would also cut at U+2028 or form feeds, which occur inside texts.
    `errors` is that of `bytes.decode`: "surrogateescape" goes on after bytes that are no UTF-8.
    """
    number = 0
    with open_bytes(path) as file:
        try:
            for number, line in enumerate(file, 1):
                if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                    line = line[3:]
                if line.endswith(b"\n"):
                    line = line[: -2 if line.endswith(b"\r\n") else -1]
                try:
                    text = line.decode("utf-8", errors)
                except UnicodeDecodeError as error:
                    raise _not_utf8(path, number, error) from None
                yield number, text
        except (EOFError, OSError, zlib.error, _lzma_error()) as error:
            # A damaged archive has no errno; a failing disk has one and is passed on as it is.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InputError(
                f"{label(path)} is damaged after line {number}: {error}. Copy or compress it again"
            ) from None


def _lzma_error() -> type[Exception]:
    return cast(type[Exception], getattr(sys.modules.get("lzma"), "LZMAError", EOFError))


def _not_utf8(path: str | os.PathLike[str], number: int, error: UnicodeDecodeError) -> InputError:
    encoding = "UTF-16" if number == 1 and error.object[:2] in BOMS_16 else "CP949"
    return InputError(
        f"{label(path)}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at position {error.start}); "
        f"convert it first, e.g. `iconv -f {encoding} -t UTF-8`"
    )


@contextmanager
def replacing(path: Path, temporary: Path | None = None) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` at the end, in one step, or disappears if anything fails."""
    temporary = temporary or path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # the name must never reach the disk before the bytes
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a failed write() doesn't say where
        raise
