"""Chunks beside an output: complete or not there, held by one process, gone at the end."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from munjang.data.blocks import Blocks
from munjang.errors import InputError


def test_life(tmp_path: Path) -> None:
    output = tmp_path / "a.npy"
    with Blocks(output) as parts:
        assert parts.job({}) is None
        parts.begin({"model": "m"})
        parts.write(0, np.ones((2, 3), np.float32), ["a", "b"])
        parts.write(1, np.zeros((1, 3), np.float32), ["\ud800"])
    with Blocks(output) as parts:  # what is begun stays
        assert parts.job({"model": "m"}) == {"settings": {"model": "m"}, "num_rows": None}
        with pytest.raises(InputError, match=r"other settings: model was 'm', is now 'n'\. Repeat"):
            parts.job({"model": "n"})
        assert (parts.num_finished(), parts.num_rows()) == (2, 3)
        assert [part.texts for part in parts.read()] == [["a", "b"], ["\ud800"]]
        assert [part.vectors.tolist() for part in parts.read()] == [[[1, 1, 1], [1, 1, 1]], [[0, 0, 0]]]
        parts.clear()
    assert list(tmp_path.iterdir()) == []


def test_nothing_begun_leaves_nothing(tmp_path: Path) -> None:
    with Blocks(tmp_path / "a.npy") as parts:
        assert parts.folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_half_written_chunk_does_not_count(tmp_path: Path) -> None:
    with Blocks(tmp_path / "a.npy") as parts:
        parts.begin({})
        parts.write(0, np.ones((2, 3), np.float32))
        (parts.folder / "00001.npy.tmp").write_bytes(b"half")
        assert parts.num_finished() == 1
        parts.begin({})  # beginning anew drops it all
        assert sorted(path.name for path in parts.folder.iterdir()) == ["job.json", "lock"]


def test_failed_write_leaves_no_chunk(tmp_path: Path) -> None:
    with Blocks(tmp_path / "a.npy") as parts:
        parts.begin({})
        (parts.folder / "00000.npy.tmp").mkdir()  # can't be opened for writing
        with pytest.raises(OSError, match=r"00000\.npy"):
            parts.write(0, np.ones((2, 3), np.float32))
        assert parts.num_finished() == 0
        (parts.folder / "00000.npy.tmp").rmdir()


def test_lock(tmp_path: Path) -> None:
    with Blocks(tmp_path / "a.npy"), pytest.raises(InputError, match=r"a\.npy is being written by another process \d+"):
        Blocks(tmp_path / "a.npy").__enter__()


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from munjang.data.blocks import Blocks\n"
        f"with Blocks(Path({str(tmp_path / 'a.npy')!r})) as parts: parts.begin({{}}); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert (tmp_path / "a.npy.parts" / "lock").exists()
    with Blocks(tmp_path / "a.npy") as parts:
        assert parts.is_begun()
