"""Labelled texts from tables: columns by their names, several labels, every bad row named at once."""

import json
from pathlib import Path

import pytest

from munjang.errors import InputError
from munjang.tasks.classify.reading import read_labelled


def test_columns_by_name_and_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("문장,분류,kind\na,x,1\nb,y,2\n", encoding="utf-8")
    assert read_labelled([str(path)]) == (["a", "b"], ["x", "y"])
    assert read_labelled([str(path)], "문장", "kind") == (["a", "b"], ["1", "2"])


def test_several_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("text\tlabel\na\tx; y;\nb\tz\n", encoding="utf-8")
    assert read_labelled([str(path)], separator=";")[1] == [["x", "y"], ["z"]]
    lists = tmp_path / "a.jsonl"
    lists.write_text("\n".join(json.dumps({"text": "t", "labels": each}) for each in (["x"], [])), encoding="utf-8")
    assert read_labelled([str(lists)])[1] == [["x"], []]


def test_bad_rows_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = (("", 1), ("t", None), ("t", 0.5), ("t", 2))
    bad = [{"text": text, "label": label} for text, label in rows]
    path.write_text("\n".join(map(json.dumps, bad)), encoding="utf-8")
    with pytest.raises(InputError, match=r"3 rows are bad.*1: the text is empty.*2: the label is empty.*0\.5"):
        read_labelled([str(path)])
    path.write_text('{"text": "t", "label": 1, "class": 2}')
    with pytest.raises(InputError, match=r"which column is the label.*label, class could be.*--label-column"):
        read_labelled([str(path)])
