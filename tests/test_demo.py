"""The demo: its corpus is what it says, its index is built once, and `--check` answers."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from munjang import BiEncoder

pytest.importorskip("lancedb")
from examples.demo import corpus

ROOT = Path(__file__).parents[1]


def test_corpus() -> None:
    found = corpus.passages()
    assert len(found) >= 300
    assert len({each.text for each in found}) == len(found)
    languages = Counter(each.metadata["lang"] for each in found)
    assert set(languages) == {"ko", "en"}
    assert abs(languages["ko"] - languages["en"]) <= 0.05 * len(found)
    topics = Counter((each.metadata["topic"], each.metadata["lang"]) for each in found)
    assert len(topics) == 24  # twelve topics, each in both languages
    assert min(topics.values()) >= 10
    for each in found:
        assert bool(re.search("[가-힣]", each.text)) == (each.metadata["lang"] == "ko"), each.text
        assert each.text.endswith((".", "!", "?"))
        assert 1000 < each.metadata.get("year", 2000) < 2027
    years = [each.metadata["year"] for each in found if "year" in each.metadata]
    assert len(years) > 60


def test_index_is_built_once(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = BiEncoder.load(tiny_bert, "cpu", threads=1)
    with corpus.open_index(tmp_path, model) as index:
        index.add(["a visitor's own text"], ["mine"])
    assert "Indexing" in capsys.readouterr().out
    with corpus.open_index(tmp_path, model) as index:
        assert index.count() == len(corpus.passages()) + 1
        (hit,) = index.search("law", k=3, where="lang = 'ko' and topic = 'law' and year < 2000")
        assert hit.document_id == "ko-law-8"
    assert capsys.readouterr().out == ""
    (tmp_path / corpus.STAMP).write_text("of another corpus", encoding="utf-8")
    with corpus.open_index(tmp_path, model) as index:
        assert index.count() == len(corpus.passages())


def test_check_with_a_tiny_model(
    tmp_path: Path, bundled: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the command to the hits, in this process."""
    pytest.importorskip("fastapi")
    from examples.demo import __main__ as demo

    monkeypatch.setattr(sys, "argv", ["demo", "--check", "--port", "0", "--folder", str(tmp_path / "index")])
    assert demo.main() == 0
    said = capsys.readouterr().out
    assert re.search(r"^Munjang's page: http://127\.0\.0\.1:\d+$", said, re.MULTILINE)
    found = re.findall(r"^  -?\d\.\d\d  (.+)$", said, re.MULTILINE)
    assert len(found) == len(demo.CHECKS)
    assert set(found) <= {each.text for each in corpus.passages()}


@pytest.mark.slow  # indexes the corpus with a real model: 20 s
def test_check(tmp_path: Path, minilm: Path) -> None:
    pytest.importorskip("fastapi")
    command = [sys.executable, "-m", "examples.demo", "--check", "--port", "0", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^Munjang's page: http://127\.0\.0\.1:\d+$", done.stdout, re.MULTILINE)
    assert "Bread stays fresh" in done.stdout
    assert "Traceback" not in done.stderr
