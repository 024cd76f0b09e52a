"""Texts for the static sibling: as many as asked, each once, none of a set on which a score is reported."""

from pathlib import Path

import pytest

from munjang.data.tables import read_texts
from recipes.ko_en_small.data import reported
from recipes.ko_en_static import WEIGHTS, _is_good, texts


def test_what_is_taken() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)
    assert _is_good("a fox", {"a dog"})
    assert not _is_good(" A Dog", {"a dog"})
    assert not _is_good("", set())
    assert not _is_good("long " * 100, set())


@pytest.mark.slow  # reads all of the data
def test_texts(data_folder: Path, tmp_path: Path) -> None:
    texts(data_folder, tmp_path / "texts.txt", 2000)
    found = list(read_texts(tmp_path / "texts.txt"))
    assert 1950 <= len(found) <= 2000
    assert len(set(found)) == len(found)
    held_out = {text.strip().casefold() for each in reported(data_folder) for column in each.texts for text in column}
    assert not held_out & {text.casefold() for text in found}
