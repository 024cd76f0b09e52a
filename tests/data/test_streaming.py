"""Data larger than memory: the same rows as if read at once, a block at a time."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from munjang.data.examples import Examples
from munjang.data.reading import read_examples
from munjang.data.streaming import Stream
from munjang.errors import InputError

NLI = ("entailment", "neutral", "contradiction")


def put(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def together(blocks: Iterator[Examples]) -> tuple[list[str], list[Any], list[int]]:
    several = list(blocks)
    texts = [text for each in several for text in each.texts[0]]
    values = [value for each in several for value in (each.labels if each.labels is not None else each.scores)]
    return texts, values, [len(each) for each in several]


def test_blocks_hold_what_a_whole_file_holds(tmp_path: Path) -> None:
    # "other" occurs first in the third block, and is the second class of all
    rows = [f"text {n}\t{'zebra' if n % 2 else 'apple' if n < 9 else 'other'}" for n in range(14)]
    path = put(tmp_path / "classes.tsv", "text\tlabel", *rows)
    whole = read_examples(path, target="labels")
    stream = Stream(path, 4, target="labels")
    facts = stream.count()
    assert (facts.num_read, facts.num_rows) == (14, 14)
    texts, labels, sizes = together(stream.blocks())
    assert texts == whole.texts[0]
    assert labels == whole.labels.tolist()
    assert sizes == [4, 4, 4, 2]
    assert stream.first().label_names == whole.label_names == ("apple", "other", "zebra")
    assert together(stream.blocks(2))[0] == whole.texts[0][8:]


def test_scores_are_scaled_by_all_rows_not_by_a_block(tmp_path: Path) -> None:
    scores = [0.5, 1, 0, 1, 4.5, 5]
    path = put(tmp_path / "sts.tsv", "sentence1\tsentence2\tscore", *(f"a {n}\tb\t{s}" for n, s in enumerate(scores)))
    stream = Stream(path, 2, target="scores")
    stream.count()
    np.testing.assert_allclose(together(stream.blocks())[1], np.array(scores) / 5)


@pytest.mark.parametrize("labels", [[1, 0, 2, 1], ["n", "e", "c", "e"], ["3", "7", "7", "3"]])
def test_classes_are_numbered_as_in_memory(labels: list[Any]) -> None:
    rows = [("one", "two", label) if isinstance(label, int) else {"text": "one", "label": label} for label in labels]
    whole = read_examples(rows, target="labels")
    stream = Stream(lambda: iter(rows), 1, target="labels")
    stream.count()
    assert together(stream.blocks())[1] == whole.labels.tolist()
    assert stream.first().label_names == whole.label_names


def test_rows_that_are_held_out_or_without_a_class_are_dropped_in_every_block(tmp_path: Path) -> None:
    path = put(
        tmp_path / "nli.tsv",
        "premise\thypothesis\tlabel",
        *(f"p {n}\th {n}\t{'-' if n % 4 == 1 else NLI[n % 3]}" for n in range(12)),
    )
    stream = Stream(path, 4, {"p 2", "h 10"}, target="labels")
    assert stream.count().num_rows == 12 - 3 - 2
    texts, _, sizes = together(stream.blocks())
    assert texts == [f"p {n}" for n in range(12) if n % 4 != 1 and n not in (2, 10)]
    assert sizes == [2, 3, 2]


def test_a_column_of_splits_is_kept_to_in_every_block() -> None:
    rows = [{"text": f"t {n}", "label": "a", "split": "test" if n < 4 else "train"} for n in range(10)]
    stream = Stream(lambda: rows, 4, target="labels", split="train")
    assert stream.count().num_rows == 6
    assert together(stream.blocks())[2] == [0, 4, 2]
    with pytest.raises(InputError, match="no rows of the split dev; 10 were read"):
        Stream(lambda: rows, 4, target="labels", split="dev").count()


def test_a_bad_row_of_a_later_block_is_named_by_its_line(tmp_path: Path) -> None:
    path = put(tmp_path / "bad.tsv", "text\tlabel", "a\tx", "b\ty", "c\tx", "\ty", "d\tx")
    with pytest.raises(InputError, match=r"bad.tsv, line 5: 'text' is empty"):
        Stream(path, 2, target="labels").count()


def test_what_can_be_read_once_is_not_counted_and_not_lost() -> None:
    def rows() -> Iterator[tuple[str, str]]:
        yield from ((f"a {n}", f"b {n}") for n in range(5))

    with pytest.raises(InputError, match=r"rows of rows can be read only once.*\(rows, not rows\(\)\), or max_steps"):
        Stream(rows(), 2).count()
    stream = Stream(rows(), 2)
    assert stream.first().texts[0] == ["a 0", "a 1"]
    assert [text for each in stream.blocks() for text in each.texts[0]] == [f"a {n}" for n in range(5)]
    with pytest.raises(InputError, match="yields no rows; it was read before: give the function that makes it"):
        list(stream.blocks())
    again = Stream(rows(), 2)
    again.first()
    assert [text for each in again.blocks(1) for text in each.texts[0]] == ["a 2", "a 3", "a 4"]


def test_without_counting_another_class_is_an_error_when_it_comes() -> None:
    stream = Stream(lambda: [("a", "b", 0), ("c", "d", 1), ("e", "f", 2)], 2, target="labels")
    stream.first()
    with pytest.raises(InputError, match="label 2 is none of 0, 1"):
        list(stream.blocks())
    declared = Stream(lambda: [("a", "b", 0), ("c", "d", 1), ("e", "f", 2)], 2, target="labels", labels=("x", "y", "z"))
    declared.first()
    assert together(declared.blocks())[1] == [0, 1, 2]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [([], "yields no rows"), (["a text"], "yields str; rows are tuples or dicts"), ([(1, 2)], "A tuple of int, int")],
)
def test_what_no_rows_can_be_made_of_is_refused(rows: list[Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Stream(lambda: iter(rows), 4).count()


def test_memory_stays_that_of_a_few_blocks() -> None:
    text = "word " * 400  # 2,000 characters: all rows are 40 MB, a block of 500 is 1 MB

    def rows() -> Iterator[tuple[str, str]]:
        yield from ((f"{text} {n}", f"b {n}") for n in range(20_000))

    stream = Stream(rows, 500)
    tracemalloc.start()
    try:
        assert stream.count().num_rows == 20_000
        assert sum(len(block) for block in stream.blocks()) == 20_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8e6
