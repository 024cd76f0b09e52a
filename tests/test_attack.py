"""The attack's command: it runs the parts that are named, and fails if one of them does."""

import argparse
import json
from pathlib import Path

import pytest

from attack import __main__ as attack
from attack.verdict import Verdict


def broken(options: argparse.Namespace) -> Verdict:
    raise RuntimeError("no server")


def lost(options: argparse.Namespace) -> Verdict:
    verdict = Verdict("lost", {"asked": 3})
    verdict.expect(2 + 1 == 3, "this holds")
    verdict.expect(2 == 3, "2 of 3 were answered")
    return verdict


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "PARTS", {"held": lambda options: Verdict("held"), "lost": lost, "broken": broken})


def test_the_exit_status_is_the_verdict(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert attack.main(["held"]) == 0
    assert attack.main(["held", "lost", "--out", str(tmp_path / "record")]) == 1
    assert "FAILED: 2 of 3 were answered" in capsys.readouterr().out
    first, second = json.loads((tmp_path / "record").read_text())["parts"]
    assert (first["held"], second["held"], second["counts"]["asked"]) == (True, False, 3)
    assert second["failures"] == ["2 of 3 were answered"]


def test_a_part_that_breaks_has_failed_and_the_rest_still_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert attack.main(["broken", "held"]) == 1
    out = capsys.readouterr().out
    assert "RuntimeError: no server" in out
    assert "held: held" in out


def test_unknown_part() -> None:
    with pytest.raises(SystemExit):
        attack.main(["nothing"])
