"""The examples of keywords and topics run as they are."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.usefixtures("minilm")
def test_keywords(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["keywords.py"])
    runpy.run_path(str(EXAMPLES / "keywords.py"))
    shown = capsys.readouterr().out
    assert "supervised learning" in shown
    assert "자전거" in shown


@pytest.mark.usefixtures("minilm")
def test_topics(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["topics.py", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "topics.py"))
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0].split(" ")[1] for line in shown[:3]] == ["30", "30", "30"]
    assert shown[4] == "merged: [60, 30]"
    assert (tmp_path / "map.html").stat().st_size > 10_000
