"""Examples of labelling and recommending run, and say what their texts promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_classify(minilm: Path) -> None:
    _, *rows = run("examples/classify.py")
    assert [row.split()[1] for row in rows[:4]] == ["delivery", "payment", "account", "(none"]
    assert [row.split()[0] for row in rows[6:]] == ["delivery", "payment", "account"]


def test_recommend(minilm: Path) -> None:
    first, plain, diverse, *for_need = run("examples/recommend.py")
    assert first == "Like Cold Orbit: Red Harvest Moon, The Last Shuttle, Signal from Vega"
    assert plain != diverse
    romances = {"Two Tickets to Rome", "Letters in June", "The Bakery on Elm Street"}
    assert {row.removeprefix("a love story: ").split(", for")[0] for row in for_need} < romances


def test_books_with_any_model(minilm: Path, tmp_path: Path) -> None:
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
def test_a_book_that_comforts(real_models: Path) -> None:
    model = ("--model", str(real_models / "e5-small"))
    comforting = {"괜찮다고 말하는 저녁", "우울이라는 손님", "느린 우체국의 겨울", "이별 세탁소"}
    comforting |= {"바다 옆 책방의 고양이", "서른아홉의 자전거", "오늘도 시를 줍다"}
    found = [row.split("  ")[1] for row in run("examples/books/find.py", *model)[2:]]
    assert len(comforting & set(found)) >= 4
