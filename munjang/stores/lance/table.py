"""A LanceDB table with its indexes; beside it a lock for writers, and a small file that says what the table holds."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import lancedb
from lancedb.index import FTS, BTree, IvfRq, IvfSq

from munjang.errors import MunjangError
from munjang.stores.base import Schema, StoreError
from munjang.stores.lance.rows import arrow_schema

FORMAT = 1  # of the file
MAGIC = b"LANC"  # the end of each of LanceDB's files
METRICS = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}
MIN_INDEX_ROWS = 50_000  # below, reading every row takes some milliseconds
MIN_KEY_ROWS = 10_000  # from here on, ids are found by an index


@dataclass(frozen=True)
class Record:
    """The content of the file. `numbers` are those of the columns of each field."""

    schema: Schema
    numbers: dict[str, int]
    num_trained: int = 0  # rows when the index of the vectors was built


class Folder:
    """The files of one store."""

    def __init__(self, path: Path, name: str) -> None:
        # Names may hold anything, tables and files may not; an underscore announces a character's number.
        self.name = re.sub(r"[^A-Za-z0-9-]", lambda found: f"_{ord(found[0]):x}_", name)
        self.path = path
        self.record_path = path / f"{self.name}.json"
        self.table_path = path / f"{self.name}.lance"

    def read(self) -> Record | None:
        """Read the record; None where there is no store."""
        try:
            content = json.loads(self.record_path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except NotADirectoryError:
            raise StoreError(f"{self.path} is a file; a store needs a folder.") from None
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.record_path} can't be read ({error}); restore it from a copy.") from None
        try:
            if content["format"] > FORMAT:
                raise StoreError(
                    f"{self.path} was written by a newer Munjang (format {content['format']}, known is {FORMAT}); "
                    "update Munjang to open it."
                )
            return Record(Schema(**content["schema"]), content["numbers"], content["num_trained"])
        except (KeyError, TypeError) as error:
            raise StoreError(f"{self.record_path} is damaged ({error!r}); restore it from a copy.") from None

    def write(self, record: Record) -> None:
        """Replace the record in one step."""
        content: dict[str, Any] = {"format": FORMAT, **asdict(record)}
        temporary = self.record_path.with_suffix(".json.tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.record_path)

    def stamp(self) -> tuple[Any, ...]:
        """Return a value that differs after every commit of any process."""
        try:
            state = self.record_path.stat()
            versions = os.listdir(self.table_path / "_versions")
        except OSError as error:
            raise StoreError(f"The store in {self.path} is gone or damaged: {error}.") from None
        # Names rather than times: two commits may fall into one tick of the file system's clock.
        return state.st_ino, state.st_mtime_ns, len(versions), min(versions, default=""), max(versions, default="")

    def files(self) -> set[Path]:
        """Return the files of rows and of indexes."""
        indexes = self.table_path / "_indices"
        folders = [self.table_path / "data", *(indexes / name for name in _names(indexes))]
        return {folder / name for folder in folders for name in _names(folder) if name.endswith(".lance")}

    def unfinished(self, known: set[Path]) -> list[Path]:
        """Return files without their end, other than those that were there before.

        On a disk that becomes full at the last bytes of a file LanceDB commits what is there, and says nothing.
        """
        return [path for path in sorted(self.files() - known) if not _is_whole(path)]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock of the only writer; others wait. The kernel releases it when its process dies."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / f"{self.name}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"The folder {self.path} can't be written: {error}.") from None
        try:
            _wait(lock)
            yield
        finally:
            os.close(lock)


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(MAGIC)))
        return file.read() == MAGIC


def _wait(lock: int) -> None:
    if sys.platform == "win32":  # untested
        import msvcrt

        msvcrt.locking(lock, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)


@contextmanager
def engine(what: str) -> Iterator[None]:
    """Raise whatever the engine raises as a StoreError."""
    try:
        yield
    except MunjangError:
        raise
    except Exception as error:  # its classes are RuntimeError, ValueError, OSError and more
        message = re.split(r", (?:location: )?/", str(error))[0]  # without the places in its source
        raise StoreError(f"{what}: {message:.300}") from error


def create_table(folder: Folder, schema: Schema) -> Record:
    """Create the table, then the file that makes it a store: a run that dies in between leaves no store."""
    record = Record(schema, {name: number for number, name in enumerate(schema.fields)})
    with engine(f"LanceDB can't make a store in {folder.path}"):
        database = lancedb.connect(folder.path)
        if folder.table_path.exists():  # left by a run that died in here
            database.drop_table(folder.name)
        table = database.create_table(folder.name, schema=arrow_schema(schema, record.numbers))
        words = FTS(base_tokenizer="whitespace", max_token_length=None, lower_case=False, stem=False)
        words.remove_stop_words = words.ascii_folding = False  # words are cut already
        table.create_index("terms", config=words)
    folder.write(record)
    return record


def missing_indexes(table: Any, record: Record, num_rows: int) -> list[str]:
    """Return the columns whose indexes pay and are missing, or were trained on less than half of the rows."""
    indexed = {index.columns[0] for index in table.list_indices()}
    missing = [column for column in ("id", "document_id") if num_rows >= MIN_KEY_ROWS and column not in indexed]
    if num_rows >= MIN_INDEX_ROWS and ("vector" not in indexed or num_rows >= 2 * record.num_trained):
        missing.append("vector")
    return missing


def build_index(table: Any, column: str, schema: Schema, num_rows: int) -> None:
    """Build the index of a column; it replaces the one before in one step."""
    table.create_index(column, config=vector_index(schema, num_rows) if column == "vector" else BTree())


def vector_index(schema: Schema, num_rows: int) -> Any:
    """Return the settings of the vector index: as many partitions as the root of the rows, RaBitQ's bits or int8."""
    kind: Any = IvfSq if schema.vectors == "int8" else IvfRq
    num_partitions = partitions(num_rows)
    # A tenth of the work of the engine's own 256 rows a partition and 50 rounds; what those would gain is not measured.
    return kind(METRICS[schema.metric], num_partitions=num_partitions, sample_rate=64, max_iterations=20)


def partitions(num_rows: int) -> int:
    """Return the number of partitions of an index over so many rows."""
    return max(round(num_rows**0.5), 1)


def probes(num_rows: int) -> int:
    """Return how many partitions a search looks into, of an index that was built over so many rows."""
    return max(partitions(num_rows) // 8, 20)
