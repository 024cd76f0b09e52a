"""What lies beside a LanceDB table: a lock for those who write, and a small file that says what the table holds."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from munjang.stores.base import Schema, StoreError

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """What the file says. `numbers` are those of the columns of each field."""

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
        """What the store holds; None where there is no store."""
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
        """Replace the file in one step."""
        content: dict[str, Any] = {"format": FORMAT, **asdict(record)}
        temporary = self.record_path.with_suffix(".json.tmp")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.record_path)

    def stamp(self) -> tuple[Any, ...]:
        """Something that differs after every commit, by whichever process."""
        try:
            state = self.record_path.stat()
            versions = os.listdir(self.table_path / "_versions")
        except OSError as error:
            raise StoreError(f"The store in {self.path} is gone or damaged: {error}.") from None
        # Names rather than times: two commits may fall into one tick of the file system's clock.
        return state.st_ino, state.st_mtime_ns, len(versions), min(versions, default=""), max(versions, default="")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One writer at a time; the others wait. The kernel lets go of the lock when its process dies."""
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


def _wait(lock: int) -> None:
    if sys.platform == "win32":  # untested
        import msvcrt

        msvcrt.locking(lock, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
