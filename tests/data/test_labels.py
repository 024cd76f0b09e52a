"""Labels of rows as classes: names, numbers, rows without agreement."""

from pathlib import Path

import numpy as np
import pytest

from munjang.data.examples import Examples
from munjang.data.reading import read_examples
from munjang.errors import InputError
from tests.data.written import WRITERS, labelled, write


@pytest.mark.parametrize(
    "written", [("entailment", "NEUTRAL", "Contradiction"), ("e", "n", "C"), ("함의", "중립", "모순")]
)
def test_nli_labels(tmp_path: Path, written: tuple[str, ...]) -> None:
    path = write(tmp_path / "nli.tsv", labelled(*written, written[0]))
    examples = read_examples(path, target="labels")
    assert examples.label_names == ("contradiction", "entailment", "neutral")
    assert examples.labels is not None
    assert examples.labels.tolist() == [1, 2, 0, 1]
    ordered = read_examples(path, target="labels", labels=("entailment", "neutral", "contradiction"))
    assert ordered.labels is not None
    assert ordered.labels.tolist() == [0, 1, 2, 0]
    assert ordered.label_names == ("entailment", "neutral", "contradiction")


def test_a_file_that_lacks_an_nli_class_numbers_the_others_alike(tmp_path: Path) -> None:
    examples = read_examples(write(tmp_path / "nli.tsv", labelled("neutral", "entailment")), target="labels")
    assert examples.labels is not None
    assert examples.labels.tolist() == [2, 1]


def test_rows_without_agreement_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = labelled("neutral", "-", "entailment", "-")
    rows[1]["text"] = ""  # a row that is dropped anyway may be bad
    examples = read_examples(write(tmp_path / "nli.tsv", rows), target="labels")
    assert examples.texts == (["text 0", "text 2"],)
    assert examples.labels is not None
    assert examples.labels.tolist() == [2, 1]
    assert "2 rows dropped that are labelled '-': no agreement" in examples.notes
    with pytest.raises(InputError, match="no rows but those"):
        read_examples(write(tmp_path / "none.tsv", labelled("-")), target="labels")


@pytest.mark.parametrize("format", WRITERS)
def test_whole_numbers_stay(tmp_path: Path, format: str) -> None:
    examples = read_examples(write(tmp_path / f"table.{format}", labelled(2, 0, 1, 2)), target="labels")
    assert examples.labels is not None
    assert examples.labels.tolist() == [2, 0, 1, 2]
    assert examples.labels.dtype == np.int64
    assert examples.label_names == ("0", "1", "2")
    assert not examples.notes


def test_other_labels(tmp_path: Path) -> None:
    def read(*labels: object, names: tuple[str, ...] | None = None) -> Examples:
        return read_examples(write(tmp_path / "table.jsonl", labelled(*labels)), target="labels", labels=names)

    gaps = read(5, 3, "9", 3.0)
    assert gaps.labels is not None
    assert gaps.labels.tolist() == [1, 0, 2, 0]
    assert gaps.label_names == ("3", "5", "9")
    assert "3, 5, 9 are numbered from 0 to 2" in gaps.notes[0]
    again = read("9", "5", names=gaps.label_names)  # the file to evaluate on, numbered as the one trained on
    assert again.labels is not None
    assert again.labels.tolist() == [2, 1]
    yes = read(True, False)
    assert yes.labels is not None
    assert yes.labels.tolist() == [1, 0]
    words = read("sport", "art", "sport")
    assert words.labels is not None
    assert words.labels.tolist() == [1, 0, 1]
    assert words.label_names == ("art", "sport")
    numbers = read(2, 0, names=("no", "maybe", "yes"))
    assert numbers.labels is not None
    assert numbers.labels.tolist() == [2, 0]
    assert numbers.label_names == ("no", "maybe", "yes")
    cased = read("SPORT", "art", names=("Sport", "Art"))
    assert cased.labels is not None
    assert cased.labels.tolist() == [0, 1]
    for labels, names, message in [
        ((3, 0), ("3", "5", "9"), "line 2: label 0 is none of 3, 5, 9"),  # 0 is not the place of a name here
        (("sport", "arts"), ("art", "sport"), "line 2: label 'arts' is none of art, sport"),
        ((0, 3), ("no", "maybe", "yes"), "line 2: label 3 is none of"),
        ((0, 0.5), None, "line 2: label 0.5 is none of names or whole numbers"),
        ((0, None), None, "line 2: no label"),
        ((0, " "), None, "line 2: no label"),
        ((0, [1]), None, r"line 2: label \[1\] is not a class"),
        ((0, 1), ("no", "no"), "name each class once"),
    ]:
        with pytest.raises(InputError, match=message):
            read(*labels, names=names)
