"""The attack's command: it runs the parts that are named, and fails if one of them does."""

import argparse
import json
from pathlib import Path

import pytest

from attack import __main__ as attack
from attack.verdict import Verdict
from docs.generate.attack import FIGURES, table

PARTS = dict(attack.PARTS)


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


def test_several_parts_end_with_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    attack.main(["held", "lost"])
    held, failed, total = capsys.readouterr().out.strip().splitlines()[-3:]
    assert held.split()[:2] == ["held", "held"]
    assert (failed.split()[:2], "2 of 3 were answered" in failed) == (["lost", "FAILED"], True)
    assert total.startswith("1 of 2 parts held, in ")


def test_the_newest_run_of_each_part_is_shown(tmp_path: Path) -> None:
    results = tmp_path / "benchmarks/results"
    results.mkdir(parents=True)
    for day, refused, failures in (("02", 5, []), ("01", 4, ["a pickle was run", "b", "c"])):
        counts = {"folders": 9, "refused": refused, "loaded": 9 - refused, "seconds": 1.0}
        part = {"name": "folders", "held": not failures, "counts": counts, "failures": failures}
        record = {"when": f"2026-01-{day}T00:00:00", "scale": 0.5, "parts": [part]}
        (results / f"2026-01-{day}-attack.json").write_text(json.dumps(record))
    assert table(tmp_path, "").splitlines()[2:] == [
        "| folders | 9 hostile folders: 5 refused, 4 loaded | yes | 2026-01-02, scale 0.5 |"
    ]
    (results / "2026-01-02-attack.json").unlink()
    assert "failed: a pickle was run; b and 1 more | no | 2026-01-01" in table(tmp_path, "")


def test_every_part_has_its_figures() -> None:
    assert set(FIGURES) == set(PARTS)
