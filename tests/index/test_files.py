"""Files in an index: only changed ones are read, broken ones are named, and a killed run leaves one copy of each."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.data.documents import Document, Section
from munjang.data.office.extractor import Extractor
from munjang.data.office.part import Part
from munjang.index import Index
from munjang.index.files import FileReader, FileSummary, document_of
from munjang.stores import open_store
from tests.data.office.made import EXTRA, MAKERS, write_hwpx

PAGES = [("첫째", "하나 둘 셋 넷. " * 30), ("Second", "one two three four. " * 30)]


@pytest.fixture
def index(tiny_bert: Path) -> Iterator[Index]:
    with Index.open("memory:", BiEncoder.load(tiny_bert, "cpu"), chunk=40) as made:
        yield made


@pytest.fixture
def files(index: Index) -> Iterator[FileReader]:
    with Extractor() as extractor:
        yield FileReader(index, extractor, progress=False)


def test_parts_become_one_document() -> None:
    parts = [Part("intro"), Part("# One\nfirst", 2, "One")]
    wanted = [Section(0, {}), Section(7, {"page": 2, "heading": "One"})]
    assert document_of(parts, "a", {"source": "a"}) == Document("intro\n\n# One\nfirst", "a", {"source": "a"}, wanted)


def test_passages_know_their_heading(files: FileReader, tmp_path: Path) -> None:
    path = tmp_path / "a.hwpx"
    write_hwpx(path, "표지", PAGES)
    assert files.add([str(path)]).num_documents == 1
    (row_ids,) = files.index.store.passages([str(path)]).values()
    passages = files.index.get(row_ids)
    assert len(passages) > 4
    headings = [passage.metadata.get("heading") for passage in passages]
    assert headings == sorted(headings, key=["첫째", "Second"].index)
    for passage in passages:
        assert passage.metadata["source"] == str(path)
        num_korean = sum(character in "하나둘셋넷" for character in passage.text)
        num_english = sum(character.isascii() and character.isalpha() for character in passage.text)
        if not num_korean or not num_english:  # most of them; one stands on both sides
            assert passage.metadata["heading"] == ("첫째" if num_korean else "Second")
    assert files.index.count("heading = 'Second'") == headings.count("Second")


def test_only_changed_files_are_read(files: FileReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        write_hwpx(tmp_path / f"{name}.hwpx", f"text of {name}", [])
    (tmp_path / "note.md").write_text("# note")
    (tmp_path / "rows.jsonl").write_text('{"text": "a row"}')
    assert str(files.add([str(tmp_path)])) == "5 documents added, 0 were there already"
    read: list[str] = []
    whole = Extractor.read
    monkeypatch.setattr(Extractor, "read", lambda self, path: read.append(path) or whole(self, path))
    assert str(files.add([str(tmp_path)])) == "0 documents added, 5 were there already"
    assert read == []
    write_hwpx(tmp_path / "b.hwpx", "another text", [])
    assert str(files.add([str(tmp_path)])) == "1 documents added, 4 were there already"
    assert read == [str(tmp_path / "b.hwpx")]
    assert files.index.get([f"{tmp_path / 'b.hwpx'}#0"])[0].text == "another text"


def test_a_write_that_was_cut_off_is_repeated(files: FileReader, tmp_path: Path) -> None:
    """A kill between storing a shorter version and removing the rest of the longer one leaves two digests."""
    path = tmp_path / "a.hwpx"
    write_hwpx(path, "", PAGES)
    files.add([str(path)])
    num_before = files.index.count()
    write_hwpx(path, "short", [])
    removing = files.index.store.remove
    files.index.store.remove = lambda ids: 0  # type: ignore[method-assign]
    files.add([str(path)])
    files.index.store.remove = removing  # type: ignore[method-assign]
    assert files.index.count() == num_before
    files.add([str(path)])
    assert files.index.count() == 1


def test_broken_files_keep_their_old_version(files: FileReader, tmp_path: Path) -> None:
    path, named = tmp_path / "a.hwpx", []
    write_hwpx(path, "the old text", [])
    (tmp_path / "b.hwpx").write_bytes(b"nothing")
    (tmp_path / "c.txt").write_bytes(b"\xff\xfe\x00")
    files.on_skip = lambda path, reason: named.append((Path(path).name, reason))
    summary = files.add([str(tmp_path)])
    assert str(summary) == "1 documents added, 0 were there already, 2 files skipped"
    assert [name for name, _ in named] == ["b.hwpx", "c.txt"]
    assert "zip" in named[0][1]
    assert "not UTF-8" in named[1][1]
    path.write_bytes(b"broken now")
    files.add([str(tmp_path)])
    assert files.index.get([f"{path}#0"])[0].text == "the old text"


def test_pruning(files: FileReader, tmp_path: Path) -> None:
    for folder in ("in", "inside"):
        (tmp_path / folder).mkdir()
        write_hwpx(tmp_path / folder / "a.hwpx", folder, [])
    files.index.add(["no file"], ["in/a"])
    files.add([str(tmp_path / "in"), str(tmp_path / "inside")])
    for folder in ("in", "inside"):
        (tmp_path / folder / "a.hwpx").unlink()
    assert files.prune([str(tmp_path / "in")]) == 1
    assert files.index.count() == 2


def test_watching(files: FileReader, tmp_path: Path) -> None:
    write_hwpx(tmp_path / "a.hwpx", "first", [])
    write_hwpx(tmp_path / "b.hwpx", "second", [])
    stamps = files.stamps([str(tmp_path)])
    files.add([str(tmp_path)])
    write_hwpx(tmp_path / "d.hwpx", "meanwhile", [])
    seen: list[FileSummary] = []
    stop = threading.Event()

    def changing() -> None:
        write_hwpx(tmp_path / "a.hwpx", "changed", [])
        (tmp_path / "b.hwpx").unlink()
        write_hwpx(tmp_path / "c.hwpx", "new", [])
        stop.wait(5)

    thread = threading.Timer(0.1, changing)
    thread.start()
    files.watch([str(tmp_path)], 0.05, seen.append, stamps, max_rounds=12)
    stop.set()
    thread.join()
    assert sum(summary.num_documents for summary in seen) == 3
    assert sum(summary.num_deleted for summary in seen) == 1
    found = {rows.texts[at] for rows in files.index.scan() for at in range(len(rows))}
    assert found == {"changed", "new", "meanwhile"}


def write_twenty(folder: Path, suffix: str) -> int:
    """Write twenty files of a kind, among them an empty one, half of one, and one with another name."""
    for number in range(17):
        name = f"{number} 문서 (초안){suffix.upper() if number == 3 else suffix}"
        sections = [(f"heading {number} {page} {'제목' * page}", f"text {number} 😀 {page}") for page in range(1, 4)]
        MAKERS[suffix](folder / name, f"파일 {number}", sections if number else sections[:1])
    whole = (folder / f"1 문서 (초안){suffix}").read_bytes()
    (folder / f"17{suffix}").write_bytes(b"")
    (folder / f"18{suffix}").write_bytes(whole[: len(whole) // 3])
    (folder / f"19{suffix}").write_bytes(bytes(range(256)) * 40)
    return 17


@pytest.mark.slow  # four processes that import torch and LanceDB
def test_twenty_of_each_kind_killed_and_run_again(tmp_path: Path, tiny_bert: Path) -> None:
    folder, place = tmp_path / "files", tmp_path / "index"
    folder.mkdir()
    kinds = [kind for kind in MAKERS if kind not in EXTRA or importlib.util.find_spec(EXTRA[kind])]
    num_good = sum(write_twenty(folder, kind) for kind in kinds)
    code = (
        "import munjang.index.ingest as ingest, sys; ingest.BATCH_DOCUMENTS = 10\n"
        "from munjang.cli import main; main(sys.argv[1:])"
    )
    arguments = ["index", "build", str(place), str(folder), "--model", str(tiny_bert), "--device", "cpu"]
    with subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not list(place.glob("**/data/*.lance")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    done = subprocess.run([sys.executable, "-m", "munjang", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    skipped = [line for line in done.stderr.splitlines() if line.startswith("munjang: skipped ")]
    store = open_store(str(place), None, create=False)
    rows = [pair for part in store.scan() for pair in zip(part.ids, part.document_ids, strict=True)]
    documents = {document for _, document in rows}
    assert len({id for id, _ in rows}) == len(rows)
    assert len(documents) + len(skipped) == 20 * len(kinds)  # nothing is lost
    assert len(documents) >= num_good  # some parsers make something of a broken file
    for number in range(17):
        for kind in kinds:
            assert any(Path(each).name.lower() == f"{number} 문서 (초안){kind}" for each in documents)
    again = subprocess.run([sys.executable, "-m", "munjang", *arguments], capture_output=True, text=True, check=False)
    assert f"0 documents added, {len(documents):,} were there already" in again.stderr


def test_the_command_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "build", str(tmp_path / "index"), str(tmp_path / "gone.pdf")]) == 2
    assert "gone.pdf: there is no such file or folder" in capsys.readouterr().err
    (tmp_path / "a.txt").write_text("a")
    assert main(["index", "build", str(tmp_path / "index"), str(tmp_path / "a.txt"), "--watch"]) == 2
    assert "--watch follows folders" in capsys.readouterr().err


@pytest.mark.slow  # two processes that import torch and LanceDB
def test_the_command_watches_until_it_is_stopped(tmp_path: Path, tiny_bert: Path) -> None:
    folder, place = tmp_path / "files", tmp_path / "index"
    folder.mkdir()
    write_hwpx(folder / "a.hwpx", "first", [])
    arguments = ["index", "build", str(place), str(folder), "--watch", "--watch-interval-s", "0.1"]
    command = [sys.executable, "-m", "munjang", *arguments, "--model", str(tiny_bert), "--device", "cpu"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        assert "1 documents added" in process.stderr.readline()
        write_hwpx(folder / "b.hwpx", "second", [])
        killer = threading.Timer(30, process.kill)
        killer.start()
        assert "1 documents added" in process.stderr.readline()
        killer.cancel()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    done = subprocess.run(
        [sys.executable, "-m", "munjang", "index", "info", str(place)], capture_output=True, check=True
    )
    assert json.loads(done.stdout)["rows"] == 2
