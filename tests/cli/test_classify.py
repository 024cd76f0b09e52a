"""munjang classify: files in, a folder or a table out, and nothing at all where something is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.cli import main
from munjang.tasks.classify.classifier import Classifier
from munjang.tasks.classify.zero_shot_classifiers import NliClassifier, zero_shot
from tests.texts import ENGLISH, KOREAN

TEXTS = [f"{word} {other}" for word in ENGLISH[:3] for other in ENGLISH[10:14]]
TEXTS += [f"{word} {other}" for word in KOREAN[:3] for other in KOREAN[10:14]]
LABELS = ["english"] * 12 + ["korean"] * 12
NEW = ["the quick", "나는 오늘"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{text}\t{label}\n" for text, label in zip(TEXTS, LABELS, strict=True))
    (tmp_path / "examples.tsv").write_text("text\tlabel\n" + rows, encoding="utf-8")
    (tmp_path / "new.txt").write_text("\n".join(NEW) + "\n", encoding="utf-8")
    return tmp_path


def classify(*argv: object) -> int:
    return main(["classify", *map(str, argv), "--device", "cpu"])


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_train_and_predict(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, out, html = folder / "made", folder / "out.jsonl", folder / "held-out.html"
    assert classify("train", folder / "examples.tsv", "-o", made, "-m", tiny_bert, "--html", html) == 0
    said = capsys.readouterr().err
    assert "on 24 rows that it had not seen; calibration error" in said
    assert f"the classifier is in {made}" in said
    assert "english → english" in html.read_text(encoding="utf-8")
    assert classify("predict", made, folder / "new.txt", "-o", out, "--probabilities") == 0
    found = rows(out)
    assert [row["label"] for row in found] == ["english", "korean"]
    expected = Classifier.load(made, device="cpu").probabilities(NEW)
    assert found[0]["p(korean)"] == pytest.approx(expected[0, 1], abs=1e-4)
    assert classify("predict", made, folder / "new.txt", "-o", out) == 2
    assert "is already there" in capsys.readouterr().err
    assert classify("predict", made, folder / "new.txt", "-o", out, "--replace", "--threshold", "1", "--none", "?") == 0
    assert [row["label"] for row in rows(out)] == ["?", "?"]


def test_how_often_is_it_right(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, html = folder / "made", folder / "page.html"
    assert classify("train", folder / "examples.tsv", "-o", made, "-m", tiny_bert, "--quiet") == 0
    (folder / "test.csv").write_text("text,answer\nthe quick,english\n나는 오늘,english\n", encoding="utf-8")
    asked = ("predict", made, folder / "test.csv", "--label-column", "answer", "--html", html)
    assert classify(*asked) == 0
    said = capsys.readouterr()
    assert "accuracy 0.500 on 2 rows" in said.err
    assert classify("predict", made, folder / "examples.tsv", "--label-column", "label") == 0
    said_of_its_own = capsys.readouterr().err
    assert "on 24 rows" in said_of_its_own
    assert "had not seen" not in said_of_its_own
    assert said.out.splitlines()[1].startswith("korean\t")
    assert "english → korean: 1" in html.read_text(encoding="utf-8")


def test_only_a_classifier_is_replaced(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, mine = folder / "made", folder / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    missing = folder / "no-model"  # it would be told of, were the place not looked at first
    for place in (mine, mine / "thesis.txt"):
        assert classify("train", folder / "examples.tsv", "-o", place, "-m", missing, "--replace") == 2
        assert "exists already and does not hold a classifier" in capsys.readouterr().err
    assert (mine / "thesis.txt").read_text() == "years of work"
    trained = ("train", folder / "examples.tsv", "-o", made, "-m", tiny_bert, "--quiet")
    assert classify(*trained) == 0
    assert classify(*trained) == 2
    assert "replace it" in capsys.readouterr().err
    assert classify(*trained, "--replace", "--calibration", "none") == 0
    assert json.loads((made / "classifier.json").read_text())["report"]["temperature"] == 1


def test_outputs_are_checked_before_the_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "page.html").write_text("mine")
    missing = ("-m", folder / "no-model")  # looked for after the outputs
    asked = ("zero-shot", folder / "new.txt", "--label", "a", "--label", "b", *missing)
    trained = ("train", folder / "examples.tsv", *missing, "-o", folder / "made")
    for argv, told in (
        ((*asked, "--html", folder / "page.html"), "page.html is already there"),
        ((*trained, "--html", folder / "page.html"), "page.html is already there"),
        ((*asked, "--html", folder / "none/page.html"), "none doesn't exist"),
        ((*asked, "-o", folder / "none/out.csv"), "none doesn't exist"),
        ((*asked, "-o", folder / "out.csv", "--html", folder / "out.csv"), "Two outputs have the same name"),
        ((*trained, "--html", folder / "made"), "Two outputs have the same name"),
    ):
        assert classify(*argv) == 2
        assert told in capsys.readouterr().err
    assert (folder / "page.html").read_text() == "mine"


def test_another_type(tiny_bert: Path, folder: Path) -> None:
    made = folder / "made"
    assert classify("train", folder / "examples.tsv", "-o", made, "-m", tiny_bert, "--dtype", "float32") == 0
    found = []
    for dtype in ("float32", "bfloat16"):
        out = folder / f"{dtype}.jsonl"
        assert classify("predict", made, folder / "new.txt", "-o", out, "--dtype", dtype, "--threads", "1") == 0
        found.append([row["probability"] for row in rows(out)])
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], abs=0.1)


def test_few_shot_with_others(tiny_bert: Path, folder: Path) -> None:
    (folder / "others.txt").write_text("42 1999\n3.14\n", encoding="utf-8")
    (folder / "fit.toml").write_text('method = "few_shot"\nnum_folds = 2\nnum_pairs = 1\n')
    given = ("train", folder / "examples.tsv", "-m", tiny_bert, "--others", folder / "others.txt", "--quiet")
    assert classify(*given, "-o", folder / "made", "--config", folder / "fit.toml") == 0
    assert (folder / "made/encoder/model.safetensors").exists()
    assert json.loads((folder / "made/classifier.json").read_text())["method"] == "few_shot"


def test_several_labels(tiny_bert: Path, folder: Path) -> None:
    lines = [{"text": text, "label": [label, "words"]} for text, label in zip(TEXTS, LABELS, strict=True)]
    (folder / "many.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert classify("train", folder / "many.jsonl", "-o", folder / "made", "-m", tiny_bert, "--quiet") == 0
    assert classify("predict", folder / "made", folder / "new.txt", "-o", folder / "out.jsonl", "--quiet") == 0
    assert [row["label"] for row in rows(folder / "out.jsonl")] == ["english;words", "korean;words"]


def test_zero_shot(
    tiny_bert: Path, make: Callable[..., Path], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("zero-shot", folder / "new.txt", "--label", "fox=a quick fox", "--label", "나는")
    out = folder / "out.jsonl"
    assert classify(*asked, "-m", tiny_bert, "-o", out) == 0
    model = BiEncoder.load(tiny_bert, device="cpu")
    expected = zero_shot({"fox": "a quick fox", "나는": "나는"}, model)
    assert [row["label"] for row in rows(out)] == expected.predict(NEW)
    scorer = make("bert", kind="classifier", num_labels=1)
    assert classify(*asked, "--nli", scorer, "--template", "about {}", "-o", out, "--replace") == 0
    labels = {"fox": "a quick fox", "나는": "나는"}
    accepted = NliClassifier.of(labels, CrossEncoder.load(scorer, device="cpu"), "about {}")
    assert [row["label"] for row in rows(out)] == accepted.predict(NEW)
    assert classify(*asked, "--nli", scorer, "-m", tiny_bert) == 2
    assert "leave --model out" in capsys.readouterr().err


def test_what_is_refused(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examples, new = folder / "examples.tsv", folder / "new.txt"
    (folder / "bad.tsv").write_text("text\tlabel\na\t\n \tb\nc\td\n")
    (folder / "empty.tsv").write_text("text\tlabel\n")
    (folder / "one.tsv").write_text("text\tlabel\na\tb\n")
    before = sorted(path.name for path in folder.iterdir())
    out = ("-o", folder / "made", "-m", tiny_bert)
    for argv, told in (
        (("train", examples), "Where to?"),
        (("train", examples, *out, "--threshold", "0.5"), "--threshold is for predict and zero-shot, not for train"),
        (("predict", "made", new, "--method", "few_shot"), "--method is for train, not for predict"),
        (("train", examples, *out, "--epochs", "2"), "epochs is for method few_shot"),
        (("train", folder / "bad.tsv", *out), "2 rows are bad"),
        (("train", folder / "empty.tsv", *out), "there are no rows"),
        (("train", folder / "one.tsv", *out), "tells two labels or more apart, and all 1 are 'b'"),
        (("train", new, *out), "which column is the label?"),
        (("predict", folder), "No texts"),
        (("predict", folder, new), "is not a classifier"),
        (("zero-shot", new, "-m", tiny_bert), "Which labels?"),
        (("zero-shot", new, "-m", tiny_bert, "--label", "one"), "Two different labels"),
        (("zero-shot", new, "--label", "a", "--label", "a=b"), "A label occurs twice"),
        (("zero-shot", new, "--label", "a", "--label", "b", "--threshold", "5"), "is a probability"),
    ):
        assert classify(*argv) == 2, argv
        assert told in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == before
