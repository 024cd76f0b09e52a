"""Examples come out the same from every format, and what is wrong with a file is said all at once."""

import gzip
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.errors import InputError, MissingExtra
from tests.data.written import PAIRS, WRITERS, Rows, as_csv, write


@pytest.mark.parametrize("format", WRITERS)
def test_every_format_gives_the_same(tmp_path: Path, format: str) -> None:
    examples = read_examples(write(tmp_path / f"pairs.{format}", PAIRS), target="scores")
    assert examples.texts == ([r["sentence1"] for r in PAIRS], [r["sentence2"] for r in PAIRS])
    assert examples.columns == ("sentence1", "sentence2")
    assert examples.scores is not None
    assert examples.scores.tolist() == [1.0, 0.1, 0.5]
    assert examples.labels is None
    assert any("0 to 5" in note for note in examples.notes)


def test_text_lines_and_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt.gz"
    path.write_bytes(gzip.compress("하나\ntwo\n".encode()))
    assert read_examples(path).texts == (["하나", "two"],)
    (tmp_path / "other.name").write_bytes(as_csv(PAIRS))
    assert len(read_examples(tmp_path / "other.name", format="csv")) == 3


def test_folder_and_list_are_read_in_order(tmp_path: Path) -> None:
    b = write(tmp_path / "b.tsv", PAIRS[2:])
    a = write(tmp_path / "a.jsonl", PAIRS[:2])
    (tmp_path / "README.md").write_text("no table")
    whole = read_examples(tmp_path)
    assert whole.texts[0] == [r["sentence1"] for r in PAIRS]
    assert read_examples([b, a]).texts[0] == [PAIRS[2]["sentence1"], PAIRS[0]["sentence1"], PAIRS[1]["sentence1"]]
    assert len(read_examples(tmp_path, max_rows=2)) == 2
    write(tmp_path / "c.csv", [{"premise": "x", "hypothesis": "y"}])
    with pytest.raises(InputError, match=r"c\.csv has no column 'sentence1'"):
        read_examples(tmp_path)


def test_no_files_no_rows(tmp_path: Path) -> None:
    for source, message in [
        (tmp_path, "no tables in this folder"),
        (tmp_path / "gone.tsv", "no such file"),
        ([], "list of files is empty"),
    ]:
        with pytest.raises(InputError, match=message):
            read_examples(source)  # type: ignore[arg-type]
    (tmp_path / "header.tsv").write_text("sentence1\tsentence2\n")
    with pytest.raises(InputError, match="no rows"):
        read_examples(tmp_path / "header.tsv")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(InputError, match="no rows"):
        read_examples(tmp_path / "empty.jsonl")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("id text label", "text"),
        ("premise hypothesis label", "premise hypothesis"),
        ("Sentence1 SENTENCE2 score", "Sentence1 SENTENCE2"),
        ("gold_label sentence1 sentence2 pairID", "sentence1 sentence2"),
        ("pair_ID sentence_A sentence_B relatedness_score entailment_judgment", "sentence_A sentence_B"),
        ("question answer focus", "question answer"),
        ("question sentence is_answer", "question sentence"),
        ("question1 question2 is_duplicate", "question1 question2"),
        ("en ko source", "en ko"),
        ("id source target", "source target"),
        ("anchor positive", "anchor positive"),
        ("negative positive anchor", "anchor positive negative"),
        ("query positive negative_10 negative_2 negative_1", "query positive negative_1 negative_2 negative_10"),
        ("question pos neg1 neg2", "question pos neg1 neg2"),
        ("전제 가설 라벨", "전제 가설"),
        ("질문 답변", "질문 답변"),
        ("문장1 문장2 점수", "문장1 문장2"),
        ("title", "title"),
    ],
)
def test_columns_are_known_by_name(tmp_path: Path, header: str, expected: str) -> None:
    path = write(tmp_path / "table.csv", [{name: f"{name} of row" for name in header.split()}])
    examples = read_examples(path)
    assert examples.columns == tuple(expected.split())
    assert examples.texts == tuple([f"{name} of row"] for name in expected.split())


def test_number_of_texts_decides(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", [{"anchor": "a", "positive": "b", "negative": "c", "text": "d"}])
    assert read_examples(path, num_texts=(1, 1)).columns == ("text",)
    pair = read_examples(path, num_texts=(2, 2))
    assert pair.columns == ("anchor", "positive")
    assert "columns not used: negative, text" in pair.notes
    assert read_examples(path, num_texts=(3, 3)).columns == ("anchor", "positive", "negative")
    assert read_examples(path, texts=("text", "anchor")).texts == (["d"], ["a"])
    for options, message in [
        ({}, r"these could be: text; anchor, positive, negative"),
        ({"num_texts": (4, None)}, "4 or more wanted"),
        ({"texts": ("text", "anchor"), "num_texts": (3, 3)}, "3 different columns"),
        ({"texts": ("text", "text")}, "different columns"),
        ({"texts": ("nothing",)}, "no column 'nothing'"),
        ({"num_texts": (1, 1), "target": "labels"}, "which column is the label"),
        ({"num_texts": (1, 1), "target": "scores"}, "which column is the score"),
        ({"num_texts": (1, 1), "label": "text"}, "two things at once"),
        ({"target": "label"}, "Did you mean 'labels'"),
        ({"max_rows": 0}, "at least 1"),
    ]:
        with pytest.raises(InputError, match=message):
            read_examples(path, **options)


def test_all_bad_rows_are_listed_at_once(tmp_path: Path) -> None:
    lines = [
        '{"anchor": "a", "positive": "b", "negative": "c", "score": 1}',
        '{"anchor": "", "positive": "b", "negative": "c", "score": 1}',
        '{"anchor": " \\t", "positive": "b", "negative": "c", "score": 1}',
        '{"anchor": "a", "positive": null, "negative": "c", "score": 1}',
        '{"anchor": "a", "positive": 3, "negative": "c", "score": 1}',
        '{"anchor": "a", "positive": "b", "score": 1}',
        '{"anchor": "a", "positive": "b", "negative": "c", "score": "high"}',
        '{"anchor": "a", "positive": "b", "negative": "c", "score": NaN}',
        '{"anchor": "a", "positive": "b", "negative": "c", "score": null}',
        "{broken",
        "[1]",
    ]
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as error:
        read_examples(path, target="scores")
    message = str(error.value).splitlines()
    assert message[0] == f"{path}: 10 of 11 rows are bad; repair or drop:"
    for number, reason in enumerate(
        [
            "'anchor' is empty",
            "'anchor' is blank",
            "'positive' is null",
            "'positive' is 3 (int), not a text",
            "no 'negative'; it has anchor, positive, score",
            "score 'high' is not a number",
            "score nan is not a finite number",
            "no score",
            "not JSON",
            "expected an object",
        ],
        2,
    ):
        assert message[number - 1].startswith(f"  {path}, line {number}: {reason}")


def test_twenty_bad_rows_are_listed_and_all_counted(tmp_path: Path) -> None:
    good = write(tmp_path / "a.tsv", [{"sentence1": "x", "sentence2": "y"}] * 7)
    bad = tmp_path / "b.tsv"
    bad.write_text("sentence2\tsentence1\n" + "only one field\n" * 15 + "\ty\n" * 1010)
    with pytest.raises(InputError) as error:
        read_examples([good, bad])
    message = str(error.value).splitlines()
    assert "1,025 of 1,032 rows are bad" in message[0]
    assert message[1] == f"  {bad}, line 2: 1 fields, but the header has 2 columns"
    assert message[20] == f"  {bad}, line 21: 'sentence2' is empty"
    assert message[21] == "  and 1,005 more"
    assert len(message) == 22


def test_parquet_rows_are_numbered_from_0(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [{"text": "a"}, {"text": None}])
    with pytest.raises(InputError, match=r"1 of 2 rows is bad.*\n.*row \(from 0\) 1: 'text' is null"):
        read_examples(path)


def test_overlap_is_dropped(tmp_path: Path) -> None:
    train = Examples("train", (["A cat.", "b", " 가다 ", "d"], ["x", "STRASSE", "y", "z"]), labels=np.arange(4))
    test = Examples("test", (["a CAT.", unicodedata.normalize("NFD", "가다"), "straße"],))
    kept = drop_overlap(train, [test, Examples("other", (["nothing"],))])
    assert kept.texts == (["d"], ["z"])
    assert kept.labels is not None
    assert kept.labels.tolist() == [3]
    assert kept.notes == ("3 of 4 rows dropped that share a sentence with the evaluation data",)
    assert drop_overlap(train, []).texts == train.texts
    with pytest.raises(InputError, match="every row"):
        drop_overlap(train, [train])


def test_datasets_of_the_hub_need_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"munjang\[datasets\]"):
        read_examples("hub:owner/name:train")
    with pytest.raises(InputError, match="not a dataset"):
        read_examples("hub:name")


CARD = """---
dataset_info:
  features:
  - {name: premise, dtype: string}
  - {name: hypothesis, dtype: string}
  - {name: label, dtype: {class_label: {names: {"0": entailment, "1": neutral, "2": contradiction}}}}
---
"""


def test_a_dataset_by_its_hub_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)  # the package prefers a folder of that name to the Hub
    folder = tmp_path / "owner" / "name"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text(CARD)
    rows: Rows = [
        {"premise": p, "hypothesis": h, "label": n} for p, h, n in [("a", "x", 0), ("b", "y", -1), ("c", "z", 2)]
    ]
    write(folder / "validation.parquet", rows)
    examples = read_examples("hub:owner/name:validation", target="labels")
    assert examples.texts == (["a", "c"], ["x", "z"])
    assert examples.labels is not None
    assert examples.labels.tolist() == [1, 0]
    with pytest.raises(InputError, match="split 'train'"):
        read_examples("hub:owner/name")
