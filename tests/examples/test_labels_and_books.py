"""Examples of labelling and recommending run, and say what their texts promise."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Run = Callable[..., list[str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a script here, where torch is loaded already; what it printed."""

    def run_script(name: str, *arguments: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(ROOT / name), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return run_script


def test_classify(run: Run) -> None:
    _, *rows = run("examples/classify.py")
    assert [row.split()[1] for row in rows[:4]] == ["delivery", "payment", "account", "(none"]
    assert [row.split()[0] for row in rows[6:]] == ["delivery", "payment", "account"]


def test_recommend(run: Run) -> None:
    first, plain, diverse, *for_need = run("examples/recommend.py")
    assert first == "Like Cold Orbit: The Last Shuttle, Signal from Vega, Red Harvest Moon"
    assert plain != diverse
    romances = {"Two Tickets to Rome", "Letters in June", "The Bakery on Elm Street"}
    assert {row.removeprefix("a love story: ").split(", for")[0] for row in for_need} < romances


def test_books_with_any_model(minilm: Path, tmp_path: Path, run: Run) -> None:
    """A catalogue of one's own: isbn13 and title are enough."""
    catalogue = tmp_path / "books.csv"
    titles = ["Learning Python", "Bread at Home", "A History of Money", "Python for Data", "Baking Cakes"]
    rows = [f"97{place},{title}" for place, title in enumerate(titles)]
    catalogue.write_text("isbn13,title\n" + "\n".join(rows) + "\n", encoding="utf-8")
    asked = ("examples/books/find.py", "--catalogue", str(catalogue), "--model", str(minilm), "-k", "2")
    head, _, *found = run(*asked, "--need", "how to program a computer")
    assert head == "5 books; how to program a computer"
    assert {row.split("  ")[1] for row in found} == {"Learning Python", "Python for Data"}
    assert run(*asked, "--like", "971")[2].endswith("like Bread at Home")


@pytest.mark.slow
def test_a_book_that_comforts(real_models: Path, run: Run) -> None:
    model = ("--model", str(real_models / "e5-small"))
    comforting = {"괜찮다고 말하는 저녁", "우울이라는 손님", "느린 우체국의 겨울", "이별 세탁소"}
    comforting |= {"바다 옆 책방의 고양이", "서른아홉의 자전거", "오늘도 시를 줍다"}
    found = [row.split("  ")[1] for row in run("examples/books/find.py", *model)[2:]]
    assert len(comforting & set(found)) >= 4
