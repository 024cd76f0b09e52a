"""A long output in blocks: finished ones are kept beside it on disk, so that a killed run can be resumed.

OUT.parts/job.json    what is being computed; another job is refused
OUT.parts/00000.npy   the vectors of the first block, there as soon as they are complete
OUT.parts/00000.json  its texts, where they are kept
OUT.parts/lock        held while a process works on it
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.data.files import replacing
from munjang.data.locks import locked
from munjang.data.vectors import VectorBlock, write_npy
from munjang.errors import InputError

OWN_FILES = re.compile(r"(job\.json|output|\d{5,}\.(npy|json))(\.tmp)?")


class Blocks:
    """The folder of finished blocks of one output. Enter it to hold its lock.

    >>> with Blocks(Path("out.npy")) as parts:
    ...     parts.begin({"model": "abc"})
    ...     parts.write(0, np.zeros((2, 384), np.float32))
    ...     parts.clear()
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = output.with_name(output.name + ".parts")
        self._lock: int | None = None

    def __enter__(self) -> "Blocks":
        self._lock = locked(self.folder, self.output)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_begun():  # nothing was begun, or all is finished
            with suppress(OSError):  # a folder with somebody's own files in it stays
                self.clear()
                (self.folder / "lock").unlink()
                self.folder.rmdir()
        if self._lock is not None:
            os.close(self._lock)

    def is_begun(self) -> bool:
        """Tell whether there is a job to resume."""
        return (self.folder / "job.json").exists()

    def job(self, settings: Mapping[str, object]) -> dict[str, Any] | None:
        """Return what `begin` recorded, None if nothing; refuse other settings."""
        if not self.is_begun():
            return None
        try:
            job: dict[str, Any] = json.loads((self.folder / "job.json").read_text(encoding="utf-8"))
            old: dict[str, object] = job["settings"]
        except (ValueError, LookupError, TypeError):
            raise InputError(f"{self.folder}/job.json is damaged; begin anew with --restart") from None
        changed = [name for name in {**old, **settings} if old.get(name) != settings.get(name)]
        if changed:
            changes = "; ".join(f"{name} was {old.get(name)!r}, is now {settings.get(name)!r}" for name in changed)
            raise InputError(
                f"{self.folder} holds an unfinished run with other settings: {changes}. "
                "Repeat that command to finish it, or drop it with --restart"
            )
        return job

    def begin(self, settings: Mapping[str, object], num_rows: int | None = None) -> None:
        """Drop what is there and record what will be computed; settings are plain JSON values."""
        self.clear()
        with replacing(self.folder / "job.json") as file:
            file.write(json.dumps({"settings": settings, "num_rows": num_rows}, indent=1).encode())

    def write(self, number: int, vectors: NDArray[Any], texts: list[str] | None = None) -> None:
        """Write one block. Its vectors come last: where they are, the block is complete."""
        if texts is not None:
            with replacing(self._path(number, "json")) as file:
                file.write(json.dumps(texts).encode())
        with replacing(self._path(number, "npy")) as file:
            write_npy(file, iter([VectorBlock(vectors)]), len(vectors))

    def num_finished(self) -> int:
        """Count the complete blocks from the first on."""
        number = 0
        while self._path(number, "npy").exists():
            number += 1
        return number

    def num_rows(self) -> int:
        """Count the rows of all finished blocks."""
        return sum(
            len(np.load(self._path(number, "npy"), mmap_mode="r", allow_pickle=False))
            for number in range(self.num_finished())
        )

    def read(self) -> Iterator[VectorBlock]:
        """Yield the finished blocks in order, one in memory at a time."""
        for number in range(self.num_finished()):
            texts = self._path(number, "json")
            yield VectorBlock(
                np.load(self._path(number, "npy"), allow_pickle=False),
                json.loads(texts.read_bytes()) if texts.exists() else None,
            )

    def clear(self) -> None:
        """Remove what `begin` and `write` made and nothing else. The job goes first: without it the rest is debris."""
        (self.folder / "job.json").unlink(missing_ok=True)
        for path in self.folder.iterdir():
            if OWN_FILES.fullmatch(path.name):
                path.unlink()

    def _path(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number:05d}.{suffix}"
