"""The benchmark of memory: texts that are all different, sums of notes, and one run of it."""

import json
import mmap
import sys
import time
from pathlib import Path

import pytest

from benchmarks import memory, memory_notes
from benchmarks.peers.table import ROOT


def test_texts_are_repeated_with_a_number_until_there_are_enough(tmp_path: Path) -> None:
    given, path = tmp_path / "given.txt", tmp_path / "texts.txt"
    given.write_text("one  fox\ntwo\n", encoding="utf-8")
    memory.write_texts(path, 5, None, given)
    assert path.read_text(encoding="utf-8").splitlines() == ["one fox", "two", "1 one fox", "1 two", "2 one fox"]
    memory.write_texts(path, 5000, None, None)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 5000
    given.write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match="no texts"):
        memory.write_texts(path, 5, None, given)


def test_summary_by_hand() -> None:
    resident = {"anonymous": 60.0, "files": 40.0, "shared": 0.0}
    loaded = {"note": "loaded", "mb": 100.0, "resident": resident, "way": "samples", "device": "cpu"}
    chunks = [{"note": "chunk", "mb": mb} for mb in (130.0, 140.0, 145.0)]
    end = {"note": "end", "mb": 150.0, "resident": resident, "pinned": None}
    found = memory.summary([{**loaded, "dtype": "torch.float32"}, *chunks, end])
    assert (found["above_loaded_mb"], found["above_first_chunk_mb"], found["dtype"]) == (50.0, 20.0, "float32")
    assert found["above_loaded_mb_by_tenths_of_rows"] == [30.0] * 5 + [40.0] * 5 + [45.0]


def _hold(num_bytes: int) -> mmap.mmap:
    """Pages of its own: what malloc gives may lie in memory that other tests have left to the process."""
    held = mmap.mmap(-1, num_bytes)
    for start in range(0, num_bytes, mmap.PAGESIZE):
        held[start] = 1
    return held


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
@pytest.mark.parametrize("can_reset", [True, False])
def test_peak_since_then(can_reset: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was held before and given back is not counted; what is held later is, also where the kernel has no mark."""
    if not can_reset:
        monkeypatch.setattr(memory_notes, "RESET", tmp_path / "missing" / "clear_refs")
    _hold(200_000_000).close()
    peak = memory_notes.Peak()
    assert can_reset or peak.way == "samples"
    start = peak.look()
    held = _hold(100_000_000)
    time.sleep(0.1)  # ten looks
    held.close()
    peak.is_over.set()
    assert 80 < peak.look() - start < 150


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
@pytest.mark.parametrize("counts", [(50,), pytest.param((50, 5000), marks=pytest.mark.slow)])
def test_one_run(
    counts: tuple[int, ...],
    tiny_bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A process for each size, through a transformer; the record has all."""
    (tmp_path / "given.txt").write_text("a quick fox\nlazy dogs\n", encoding="utf-8")
    arguments = ["--model", str(tiny_bert), "--texts", str(tmp_path / "given.txt"), "--count", *map(str, counts)]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["memory", *arguments, "--out", str(tmp_path / "out.json")])
    memory.main()
    runs = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["runs"]
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")] == runs
    assert [found["texts"] for found in runs] == list(counts)
    for found in runs:
        assert (found["device"], found["dtype"], found["pinned_mb"]) == ("cpu", "float32", None)
        assert 0 <= found["above_first_chunk_mb"] <= found["above_loaded_mb"] < 1000
        assert found["loaded_mb"] + found["above_loaded_mb"] == pytest.approx(found["peak_mb"], abs=0.11)
        assert found["resident_mb_when_loaded"]["anonymous"] > 10
