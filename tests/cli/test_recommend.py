"""munjang recommend: a catalogue in, a table and a page out."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder, Index
from munjang.cli import main
from munjang.tasks.recommend.catalogue import Items
from munjang.tasks.recommend.ranking import RecommendConfig, recommend

TEXTS = ["the quick fox jumps", "a quick brown fox", "나는 오늘 학교에 갔다", "나는 오늘 김치찌개는", "old radio music"]
IDS = [f"book{place}" for place in range(5)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{id}\t{text}\n" for id, text in zip(IDS, TEXTS, strict=True))
    (tmp_path / "books.tsv").write_text("id\ttext\n" + rows, encoding="utf-8")
    return tmp_path


def ask(folder: Path, *argv: object) -> int:
    return main(["recommend", *map(str, argv), "--device", "cpu"])


def test_for_likes(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, html = folder / "out.jsonl", folder / "out.html"
    asked = (folder / "books.tsv", "--like", "book0", "book2", "--dislike", "book3", "-m", tiny_bert)
    assert ask(folder, *asked, "-k", "2", "--diversity", "0", "-o", out, "--html", html) == 0
    assert f"2 items in {out}" in capsys.readouterr().err
    items = Items.of_texts(TEXTS, BiEncoder.load(tiny_bert, device="cpu"), IDS)
    expected = recommend(items, ["book0", "book2"], ["book3"], config=RecommendConfig(k=2, diversity=0))
    found = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["because"]) for row in found] == [(each.id, each.because) for each in expected]
    assert all(row["keywords"] for row in found)
    shown = html.read_text(encoding="utf-8")
    assert shown.count('<circle class="dot colour-2"') == 2  # liked
    assert shown.count('<circle class="dot colour-0"') == 2  # recommended
    assert f"If you like {TEXTS[0]}, {TEXTS[2]}" in shown  # texts without titles, not ids


def test_titles_of_the_table(tiny_bert: Path, folder: Path) -> None:
    rows = "".join(f"{id}\tTitle of {id}\t{text}\n" for id, text in zip(IDS, TEXTS, strict=True))
    (folder / "titled.tsv").write_text("id\ttitle\ttext\n" + rows, encoding="utf-8")
    asked = (folder / "titled.tsv", "--like", "book0", "-m", tiny_bert, "-k", "2", "--html", folder / "x.html")
    assert ask(folder, *asked, "-o", folder / "out.jsonl") == 0
    shown = (folder / "x.html").read_text(encoding="utf-8")
    assert "If you like Title of book0" in shown
    found = [json.loads(line)["id"] for line in (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert all(f'<h3 dir="auto">Title of {id}</h3>' in shown for id in found)


def test_for_a_need(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(folder, folder / "books.tsv", "--need", "나는 오늘", "-m", tiny_bert, "-k", "1", "--keywords", "0") == 0
    first, why = capsys.readouterr().out.splitlines()
    cosines = BiEncoder.load(tiny_bert, device="cpu").similarity(["나는 오늘"], TEXTS)[0]
    assert IDS[int(cosines.argmax())] in first
    assert why.strip() == "for the need"


def test_half_of_a_surrogate_pair(tiny_bert: Path, folder: Path) -> None:
    rows = [{"id": id, "text": f"{text} \ud800 apple"} for id, text in zip(IDS, TEXTS, strict=True)]
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = (folder / "items.jsonl", "--like", "book0", "-m", tiny_bert, "-k", "1", "--html", folder / "x.html")
    assert ask(folder, *asked, "-o", folder / "out.jsonl") == 0
    assert "\ufffd apple" in (folder / "x.html").read_text(encoding="utf-8")


def test_outputs_are_checked_before_the_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "page.html").write_text("mine")
    asked = (folder / "books.tsv", "--like", "book0", "-m", folder / "no-model")  # looked for after the outputs
    for argv, told in (
        (("--html", folder / "page.html"), "page.html is already there"),
        (("--html", folder / "none/page.html"), "none doesn't exist"),
        (("--html", folder, "--replace"), f"{folder} is a folder"),
        (("-o", folder / "none/out.csv"), "none doesn't exist"),
        (("-o", folder / "out.csv", "--html", folder / "out.csv"), "Two outputs have the same name"),
    ):
        assert ask(folder, *asked, *argv) == 2
        assert told in capsys.readouterr().err
    assert (folder / "page.html").read_text() == "mine"
    assert ask(folder, "--index", folder / "index", "--like", "book0", "--dtype", "float32") == 2
    assert "--dtype with --index needs --model too" in capsys.readouterr().err


def test_a_text_that_a_tsv_cannot_hold(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tabs.csv").write_text('id,text\na,"one\ttab"\nb,none\n', encoding="utf-8")
    asked = (folder / "tabs.csv", "--like", "b", "-o", folder / "out.tsv")
    assert ask(folder, *asked, "-m", folder / "no-model") == 2  # told of before a model is looked for
    assert "A .tsv holds no tabs or line breaks, but 'one\\ttab' has one" in capsys.readouterr().err
    assert ask(folder, *asked[:-1], folder / "out.csv", "-m", tiny_bert, "--keywords", "0") == 0
    assert "one\ttab" in (folder / "out.csv").read_text()


def test_another_type(tiny_bert: Path, folder: Path) -> None:
    asked = (folder / "books.tsv", "--like", "book0", "-m", tiny_bert, "-k", "4", "--quiet")
    found = []
    for dtype in ("float32", "bfloat16"):
        assert ask(folder, *asked, "--dtype", dtype, "-o", folder / f"{dtype}.jsonl") == 0
        lines = (folder / f"{dtype}.jsonl").read_text(encoding="utf-8").splitlines()
        found.append({row["id"]: row["score"] for row in map(json.loads, lines)})
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], abs=0.05)


def test_ready_vectors_need_no_model(folder: Path) -> None:
    np.save(folder / "books.npy", np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 1], [-1, 0]], np.float32))
    asked = (folder / "books.tsv", "--vectors", folder / "books.npy", "--like", "book2", "-k", "1")
    assert ask(folder, *asked, "-o", folder / "out.csv", "--quiet") == 0
    with (folder / "out.csv").open(encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["book3"]


def test_an_index(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("lancedb", reason="an index in a folder needs lancedb")
    with Index.open(folder / "index", tiny_bert) as index:
        index.add(TEXTS, ids=IDS)
    assert ask(folder, "--index", folder / "index", "--like", "book0", "-k", "1", "--html", folder / "x.html") == 0
    assert "book" in capsys.readouterr().out
    assert (folder / "x.html").exists()
    assert ask(folder, "--index", folder / "index", "--like", "book0", "--column", "text") == 2
    assert "--column is for files of items" in capsys.readouterr().err


def test_what_is_refused(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    books = folder / "books.tsv"
    np.save(folder / "few.npy", np.ones((3, 2), np.float32))
    (folder / "no.npy").write_text("no numbers")
    for argv, told in (
        (("--like", "a"), "Which items?"),
        ((books,), "Recommended for whom?"),
        ((books, "--like", "book9", "-m", tiny_bert), "There is no item 'book9'; give the id of one that is there."),
        ((books, "--like", "book0", "-o", folder / "out.xlsx"), "suffix"),
        ((books, "--like", "book0", "--vectors", folder / "few.npy"), "3 vectors, but there are 5 texts"),
        ((books, "--like", "book0", "--vectors", folder / "no.npy"), "is not a valid .npy file"),
        ((books, "--like", "book0", "--keywords", "-1"), "--keywords must be at least 0"),
        ((books, "--like", "book0", "--diversity", "3"), "diversity must be between 0 and 1"),
    ):
        assert ask(folder, *argv) == 2, argv
        assert told in capsys.readouterr().err
