"""Texts of a domain: every different one once, sentences alone, and pairs that belong together."""

from pathlib import Path

import pytest

from munjang.errors import InputError
from munjang.objectives import OBJECTIVES
from munjang.training.domain import METHODS, alone, pairs, read_domain
from tests.training.runs import write_tsv

FIRST, SECOND, THIRD = "The first sentence stands.", "A second one follows it.", "And the third one ends all."


def test_files_and_folders(tmp_path: Path) -> None:
    folder = tmp_path / "domain"
    (folder / "deep").mkdir(parents=True)
    (folder / "b.txt").write_text("one\n two \n\none\n")
    (folder / "deep" / "a.txt").write_text("three\ntwo\n")
    table = write_tsv(tmp_path / "t.tsv", "text number", [("four", 1), ("one", 2)])
    assert read_domain([str(folder), str(table)]) == ["one", "two", "three", "four"]
    other = write_tsv(tmp_path / "o.tsv", "title abstract", [("five", "six")])
    assert read_domain([str(other)], "abstract") == ["six"]
    with pytest.raises(InputError, match="which column"):
        read_domain([str(other)])


def test_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text(" \n\n")
    with pytest.raises(InputError, match=r"no texts in .*empty\.txt"):
        read_domain([str(tmp_path / "empty.txt")])
    (tmp_path / "some.txt").write_text("a text\n")
    with pytest.raises(InputError, match="nowhere: no such file or folder"):  # though another one has texts
        read_domain([str(tmp_path / "some.txt"), str(tmp_path / "nowhere")])


def test_sentences_alone() -> None:
    """Each once, in order, those of a few characters left out; a domain of short texts is taken as it is."""
    found = alone([f"{FIRST} {SECOND} Short.", f"{SECOND} {THIRD}"], "name")
    assert found.texts == ([FIRST, SECOND, THIRD],)
    assert alone(["Hm.", "Ha."], "name").texts == (["Hm.", "Ha."],)


def test_neighbours_are_pairs() -> None:
    found = pairs([f"{FIRST} {SECOND} {THIRD}", f"{FIRST} {SECOND}", "Alone it stands here."], "name")
    assert list(zip(*found.texts, strict=True)) == [
        (FIRST, SECOND),
        (SECOND, THIRD),
        (FIRST, f"{SECOND} {THIRD}"),
    ]
    with pytest.raises(InputError, match="name: no text has two sentences"):
        pairs([FIRST, SECOND], "name")


@pytest.mark.parametrize("method", METHODS)
def test_methods_make_what_their_objectives_take(method: str) -> None:
    objective, made = METHODS[method]
    least, most = OBJECTIVES[objective].num_texts
    columns = len(made([f"{FIRST} {SECOND} {THIRD}"], "x").texts)
    assert least <= columns <= (most or columns)
