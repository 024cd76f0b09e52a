"""Examples come out the same from every format, and what is wrong with a file is said all at once."""

import csv
import gzip
import io
import json
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.errors import InputError, MissingExtra

Rows = list[dict[str, object]]
PAIRS: Rows = [
    {"sentence1": "A plane is taking off.", "sentence2": "비행기가 이륙한다.", "score": 5},
    {"sentence1": 'He said "no", twice.', "sentence2": "A cat sits.", "score": 0.5},
    {"sentence1": "남자가 연주한다.", "sentence2": "A man plays.", "score": 2.5},
]


def as_csv(rows: Rows) -> bytes:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def as_tsv(rows: Rows) -> bytes:
    return "".join("\t".join(map(str, line)) + "\n" for line in [list(rows[0]), *(r.values() for r in rows)]).encode()


def as_jsonl(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def as_parquet(rows: Rows) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({name: [row[name] for row in rows] for name in rows[0]}), file)
    return file.getvalue()


WRITERS = {"csv": as_csv, "tsv": as_tsv, "jsonl": as_jsonl, "parquet": as_parquet}


def write(path: Path, rows: Rows) -> Path:
    path.write_bytes(WRITERS[path.suffix[1:]](rows))
    return path


def labelled(*labels: object, **columns: str) -> Rows:
    return [{"text": f"text {row}", **columns, "label": label} for row, label in enumerate(labels)]


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


@pytest.mark.parametrize(
    ("values", "declared", "scaled", "note"),
    [
        ([0, 0.25, 1], None, [0, 0.25, 1], "0 to 1 (found"),
        ([-0.5, 1], None, [0.25, 1], "-1 to 1 (found"),
        ([0, 2.5, 4], None, [0, 0.5, 0.8], "0 to 5 (found"),
        ([0, 6], None, [0, 0.6], "0 to 10 (found"),
        ([50, 100], None, [0.5, 1], "0 to 100 (found"),
        ([1, 2, 5], (1, 5), [0, 0.25, 1], "1 to 5 (declared)"),
    ],
)
def test_scores_are_scaled(
    tmp_path: Path, values: list[float], declared: tuple[float, float] | None, scaled: list[float], note: str
) -> None:
    path = write(tmp_path / "t.csv", [{"sentence1": "a", "sentence2": "b", "similarity": value} for value in values])
    examples = read_examples(path, target="scores", score_range=declared)
    assert examples.scores is not None
    assert np.allclose(examples.scores, scaled, rtol=0, atol=1e-15)
    assert note in examples.notes[-1]


def test_scores_out_of_range(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", [{"sentence1": "a", "sentence2": "b", "score": value} for value in [3, 0, 7, -200]]
    )
    with pytest.raises(InputError, match="lie from -200 to 7, in none"):
        read_examples(path, target="scores")
    with pytest.raises(InputError) as error:
        read_examples(path, target="scores", score_range=(1, 5))
    assert "3 of 4 rows are bad" in str(error.value)
    assert "line 3: score 0 is not within 1 to 5" in str(error.value)
    with pytest.raises(InputError, match="lowest and a highest"):
        read_examples(path, target="scores", score_range=(5, 1))


def test_yes_and_no_are_scores_and_classes(tmp_path: Path) -> None:
    path = write(tmp_path / "t.tsv", [{"question1": "a", "question2": "b", "is_duplicate": value} for value in (1, 0)])
    scores, labels = read_examples(path, target="scores").scores, read_examples(path, target="labels").labels
    assert scores is not None
    assert scores.tolist() == [1, 0]
    assert labels is not None
    assert labels.tolist() == [1, 0]


def test_candidate_scores_stay_as_they_are(tmp_path: Path) -> None:
    texts: dict[str, object] = {"query": "q", "positive": "p", "negative_1": "m", "negative_2": "n"}
    expected = [[9.5, -3, 2], [7, 1, -11]]
    each = [{**texts, **{f"score_{at}": value for at, value in enumerate(row, 1)}} for row in expected]
    lists = [{**texts, "scores": row} for row in expected]
    spaces = [{**texts, "scores": " ".join(map(str, row))} for row in expected]
    for name, rows in [("a.tsv", each), ("b.jsonl", lists), ("c.csv", lists), ("d.parquet", lists), ("e.tsv", spaces)]:
        examples = read_examples(write(tmp_path / name, rows), target="scores")
        assert examples.scores is not None
        assert examples.scores.tolist() == expected, name
    margin = read_examples(write(tmp_path / "margin.tsv", [{**texts, "score": 8.5}]), target="scores")
    assert margin.scores is not None
    assert margin.scores.tolist() == [8.5]
    path = write(tmp_path / "logits.tsv", [{"query": "q", "passage": "p", "logit": -7.5}])
    logits = read_examples(path, score=("logit",))  # a teacher's, on its own scale
    assert logits.scores is not None
    assert logits.scores.tolist() == [[-7.5]]
    with pytest.raises(InputError, match=r"2 columns of scores .* for 3 candidates"):
        read_examples(tmp_path / "a.tsv", score=("score_1", "score_2"))
    with pytest.raises(InputError, match="score_range is for one score"):
        read_examples(tmp_path / "a.tsv", target="scores", score_range=(0, 1))
    lists[1]["scores"] = [1, 2]
    with pytest.raises(InputError, match=r"line 2: 2 scores .*3 wanted"):
        read_examples(write(tmp_path / "f.jsonl", lists), target="scores")


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
    with pytest.raises(InputError, match="no dataset"):
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
