"""A folder takes the place of another, or the other stays, whichever step fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from munjang.bi_encoder import BiEncoder
from munjang.checkpoint.atomic import remove_leftovers, replacing_folder
from munjang.errors import CheckpointError


@pytest.fixture
def old(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir(mode=0o750)
    (folder / "file").write_text("old")
    return folder


def write(target: Path, text: str = "new") -> None:
    with replacing_folder(target) as made:
        (made / "inner").mkdir()
        (made / "file").write_text(text)


@pytest.mark.parametrize("has_exchange", [True, False])
def test_it_is_replaced(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_exchange: bool) -> None:
    if not has_exchange:
        monkeypatch.setattr("munjang.checkpoint.atomic.EXCHANGE_CALLS", {})
    write(old)
    write(tmp_path / "some" / "where")
    for folder in (old, tmp_path / "some" / "where"):
        assert sorted(path.name for path in folder.iterdir()) == ["file", "inner"]
        assert (folder / "file").read_text() == "new"
    assert old.stat().st_mode & 0o777 == 0o750
    assert sorted(path.name for path in tmp_path.iterdir()) == ["place", "some"]


def test_a_link_stays_one(old: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(old)
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (old / "file").read_text() == "new"


def test_a_failure_inside_changes_nothing(old: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), replacing_folder(old) as made:  # noqa: PT012
        (made / "file").write_text("half")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["place"]
    assert (old / "file").read_text() == "old"


@pytest.mark.parametrize("failing", [{1}, {2}, {2, 3}])
def test_whichever_rename_fails(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: set[int]) -> None:
    """The old one aside, the new one in its place, and after a failure the old one back."""
    rename, calls = Path.rename, 0

    def broken(self: Path, target: Any) -> Path:
        nonlocal calls
        calls += 1
        if calls in failing:
            raise OSError(f"rename {calls} failed")
        return rename(self, target)

    monkeypatch.setattr("munjang.checkpoint.atomic.EXCHANGE_CALLS", {})
    monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises((OSError, CheckpointError), match=f"rename {min(failing)} failed") as raised:
        write(old)
    files = {path.relative_to(tmp_path).parts[0]: path.read_text() for path in tmp_path.rglob("file")}
    if failing == {2, 3}:  # where it is now is said
        [(name, text)] = files.items()
        assert text == "old"
        assert f"What was there is now {tmp_path / name}." in str(raised.value)
    else:
        assert files == {"place": "old"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.parametrize(("mask", "wanted"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_whoever_may_read_a_file_may_read_all(tmp_path: Path, mask: int, wanted: int) -> None:
    """safetensors writes files that only their owner can read: another user could load half of a model."""
    before = os.umask(mask)
    try:
        with replacing_folder(tmp_path / "place") as made:
            save_file({"weights": np.ones(3, np.float32)}, made / "model.safetensors")
            (made / "config.json").write_text("{}")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "place").iterdir()} == {wanted}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_a_file_that_is_kept_keeps_its_mode(old: Path) -> None:
    """It comes along by a link, so that a change of its mode would be one of the user's own file."""
    (old / "private").write_text("mine")
    (old / "private").chmod(0o400)

    def keep(before: Path, made: Path) -> None:
        os.link(before / "private", made / "private")

    with replacing_folder(old, keep) as made:
        (made / "file").write_text("new")
    assert (old / "private").stat().st_mode & 0o777 == 0o400
    assert ((old / "private").read_text(), (old / "file").read_text()) == ("mine", "new")


def leftovers(folder: Path) -> list[Path]:
    return sorted(folder.glob(".*.saving-*"))


KILLED = """
import os, sys
from pathlib import Path
from munjang.bi_encoder import BiEncoder
from munjang.checkpoint.atomic import remove_leftovers, replacing_folder
with replacing_folder(Path(sys.argv[1])) as made:
    (made / "file").write_text("half")
    os.kill(os.getpid(), 9)
"""


def test_what_killed_saves_left_is_removed(old: Path, tmp_path: Path) -> None:
    for _ in range(3):
        subprocess.run([sys.executable, "-c", KILLED, str(old)], check=False)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "place2")], check=False)
    aside = tmp_path / ".gone.saving-00.old"  # the only copy of a folder that a kill between two renames left
    aside.mkdir()
    remove_leftovers(tmp_path / "gone")
    assert len(leftovers(tmp_path)) == 3  # the saves of `place` removed what the one before had left
    with replacing_folder(old) as made:  # a save that is under way stays
        (made / "file").write_text("new")
        remove_leftovers(old)
        assert leftovers(tmp_path) == sorted([aside, made, *tmp_path.glob(".place2.*")])
    remove_leftovers(tmp_path / "place2")
    assert leftovers(tmp_path) == [aside]
    assert (old / "file").read_text() == "new"


def test_loading_removes_leftovers_too(tiny_bert: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "place"))
    subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    assert len(leftovers(tmp_path)) == 1
    BiEncoder.load(folder, "cpu")
    assert leftovers(tmp_path) == []
