"""Progress counts, and speaks only where somebody looks."""

import io
import sys

import pytest

from munjang import progress
from munjang.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError("Input/output error")


def look(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience_s: float = 0.0) -> None:
    """Not a fixture: pytest puts its own stderr back between the set-up of a test and the test."""
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "MIN_SHOWN_S", patience_s)


def test_quiet_unless_a_terminal_looks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MIN_SHOWN_S", 0.0)
    with Progress(10, "x") as quiet:
        quiet.advance(10)
    assert capsys.readouterr().err == ""


def test_quick_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    look(monkeypatch, terminal, patience_s=60.0)
    with Progress(10, "x") as quick:
        quick.advance(10)
    assert terminal.getvalue() == ""


def test_terminal_has_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    look(monkeypatch, terminal)
    with Progress(1000, "encoding") as shown:
        shown.advance(250)
        shown.advance(750)
    assert terminal.getvalue().startswith("\r\x1b[Kencoding: 250/1,000 (25%), ")
    assert " left" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 1
    assert terminal.getvalue().rpartition("\r\x1b[K")[2].startswith("encoding: 1,000/1,000 (100%), ")


def test_log_has_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MIN_SHOWN_S", 0.0)
    with Progress(None, "encoding", enabled=True) as shown:
        shown.advance(1)
        shown.advance(1)  # too soon for another line
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("encoding: 1, ")
    assert last.startswith("encoding: 2, ")


def test_skipped_says_nothing_about_speed() -> None:
    shown = Progress(100, "x")
    shown.skip(50)
    assert str(shown) == "x: 50/100 (50%), 0.0/s"


def test_lost_terminal_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    look(monkeypatch, Gone())
    with Progress(10, "x", enabled=True) as lost:
        lost.advance(5)
        lost.advance(5)
    assert lost.done == 10
    assert not lost.enabled


@pytest.mark.parametrize(
    ("seconds", "shown"), [(5, "5 s"), (65, "1 min 05 s"), (3723, "1 h 02 min"), (59.9, "1 min 00 s")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert progress._duration(seconds) == shown
