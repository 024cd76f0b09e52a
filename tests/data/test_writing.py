"""Tables to disk: what was written is what is read back."""

from pathlib import Path

import numpy as np
import pytest

from munjang.data.examples import Examples
from munjang.data.tables import read_pairs
from munjang.data.writing import WRITERS, check_suffix, check_texts, columns_of, write_table
from munjang.errors import InputError

PLAIN = [('a "quoted" text, with commas', "가나다"), ("", " spaces "), ("null", "1"), ("\u2028 a line?", "'")]
BROKEN = [("two\nlines", "a\ttab"), ("lone \ud800 surrogate", "b")]


@pytest.mark.parametrize("suffix", WRITERS)
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    rows = PLAIN if suffix == ".tsv" else PLAIN + BROKEN
    path = tmp_path / f"table{suffix}"
    write_table(
        path, {"anchor": [a for a, _ in rows], "positive": [b for _, b in rows], "label": list(range(len(rows)))}
    )
    shown = [(a.replace("\ud800", "\ufffd"), b) for a, b in rows]
    assert list(read_pairs(path, ("anchor", "positive"))) == shown
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".parquet"])
def test_no_rows(tmp_path: Path, suffix: str) -> None:
    write_table(tmp_path / f"table{suffix}", {"anchor": [], "positive": []})
    assert list(read_pairs(tmp_path / f"table{suffix}")) == []


def test_what_a_tsv_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'a\\ttab' has one; write \.csv or \.jsonl"):
        write_table(tmp_path / "table.tsv", {"text": ["fine", "a\ttab"]})
    assert list(tmp_path.iterdir()) == []
    check_texts(tmp_path / "table.csv", ["a\ttab"])


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Unknown suffix of the output '\.xlsx'; choose from \.csv"):
        check_suffix(tmp_path / "table.xlsx")
    with pytest.raises(InputError, match="doesn't exist; create it first"):
        check_suffix(tmp_path / "none" / "table.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        check_suffix(tmp_path / "folder.csv")


def test_columns_of_examples() -> None:
    named = Examples("x", (["a"], ["b"]), ("one", "two"), np.array([1]), ("no", "yes"), np.array([0.5]))
    assert columns_of(named) == {"one": ["a"], "two": ["b"], "label": ["yes"], "score": [0.5]}
    assert columns_of(Examples("x", (["a"],), labels=np.array([1]))) == {"text_1": ["a"], "label": [1]}
