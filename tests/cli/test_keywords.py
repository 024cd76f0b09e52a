"""munjang keywords: tables in, keywords out, and the page of marked texts."""

import csv
import json
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.cli import main

TEXTS = ["The kitten sleeps on the sofa.", "of the", "Stocks <b>fell</b> sharply; investors sold shares."]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_rows_of_keywords_and_a_page(
    texts: Path, tmp_path: Path, minilm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, page = tmp_path / "keywords.csv", tmp_path / "keywords.html"
    command = ["keywords", str(texts), "-o", str(output), "--model", str(minilm), "--top", "2", "--device", "cpu"]
    assert main([*command, "--html", str(page)]) == 0
    found = rows(output)
    assert [row["row"] for row in found] == ["0", "0", "2", "2"]
    assert found[0]["keyword"] in TEXTS[0]
    assert float(found[0]["score"]) >= float(found[1]["score"])
    assert "4 keywords of 3 texts" in (said := capsys.readouterr().err)
    assert "1 texts have none" in said
    shown = page.read_text("utf-8")
    assert f"<mark>{found[0]['keyword']}</mark>" in shown
    assert "&lt;b&gt;" in shown  # as text
    assert "<script>alert" not in shown


def test_korean_as_macos_writes_it_is_found_and_marked(tmp_path: Path, minilm: Path) -> None:
    (tmp_path / "texts.txt").write_text(unicodedata.normalize("NFD", "서울은 대한민국의 수도이다.\n"), encoding="utf-8")
    output, page = tmp_path / "keywords.csv", tmp_path / "keywords.html"
    command = ["keywords", str(tmp_path / "texts.txt"), "-o", str(output), "-m", str(minilm), "--device", "cpu"]
    assert main([*command, "--html", str(page)]) == 0
    found = {row["keyword"] for row in rows(output)}
    assert {"서울", "대한민국"} <= found
    assert "<mark>대한민국</mark>의" in page.read_text("utf-8")


def test_ready_vectors_give_the_same(texts: Path, tmp_path: Path, minilm: Path) -> None:
    command = ["keywords", str(texts), "-m", str(minilm), "--device", "cpu", "--quiet"]
    np.save(tmp_path / "vectors.npy", BiEncoder.load(minilm, device="cpu").encode(TEXTS))
    assert main([*command, "-o", str(tmp_path / "a.csv")]) == 0
    assert main([*command, "-o", str(tmp_path / "b.csv"), "--vectors", str(tmp_path / "vectors.npy")]) == 0
    first, again = rows(tmp_path / "a.csv"), rows(tmp_path / "b.csv")
    assert [row["keyword"] for row in first] == [row["keyword"] for row in again]


def test_given_candidates_and_seeds(texts: Path, tmp_path: Path, minilm: Path) -> None:
    (tmp_path / "phrases.txt").write_text("Shares\nkitten\n\nabsent\n", encoding="utf-8")
    output = tmp_path / "keywords.jsonl"
    command = ["keywords", str(texts), "-o", str(output), "-m", str(minilm), "--quiet", "--seeds", "pets", "animals"]
    assert main([*command, "--candidates", str(tmp_path / "phrases.txt")]) == 0
    found = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [(row["row"], row["keyword"]) for row in found] == [(0, "kitten"), (2, "Shares")]


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--top", "0"], "top must be at least 1"),
        (["--ngrams", "2", "1"], "ngrams"),
        (["--pick", "max_sum", "--top", "30"], "num_candidates"),
        (["-o", "there.csv"], "already there"),
        (["-o", "keywords.npy"], "suffix"),
        (["--html", "nofolder/x.html"], "folder nofolder doesn't exist"),
        (["-o", "same.csv", "--html", "same.csv"], "same name"),
        (["--vectors", "x.npy", "--seeds", "pets"], "leave --vectors out"),
        (["-o", "x.tsv", "--candidates", "tabs.txt"], "A .tsv holds no tabs"),
    ],
)
def test_bad_input_is_refused(
    texts: Path,
    tmp_path: Path,
    extra: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.csv").touch()
    Path("tabs.txt").write_text("the\tkitten\n")
    assert main(["keywords", str(texts), "-o", "keywords.csv", "-m", "nowhere", *extra]) == 2
    assert message in capsys.readouterr().err


def test_no_texts_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.txt").touch()
    assert main(["keywords", str(tmp_path / "empty.txt"), "-o", str(tmp_path / "out.csv"), "-m", "nowhere"]) == 2
    assert "no texts" in capsys.readouterr().err
