"""munjang paraphrases, cluster and dedupe: files in, files and a page out, nothing where something is wrong."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from munjang.cli import main
from tests.tasks.cluster.test_clustering import heaps

TEXTS = [f"a {word} text" for word in ("red", "green", "blue", "old", "new", "long")] + ["A RED  text", "<b>bold</b>"]

BITEXT = ["paraphrases", "texts.txt", "--others", "train.txt", "-o", "x.csv", "--bitext"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    (tmp_path / "train.txt").write_text("a green text\n", encoding="utf-8")
    vectors, labels = heaps()
    np.save(tmp_path / "heaps.npy", vectors)
    rows = [f"heap {label} row {row}" for row, label in enumerate(labels.tolist())]
    (tmp_path / "heaps.csv").write_text("text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_paraphrases(folder: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = folder / "pairs.jsonl", folder / "pairs.html"
    argv = [str(folder / "texts.txt"), "-o", str(out), "-m", str(tiny_bert), "--device", "cpu", "--html", str(page)]
    assert main(["paraphrases", *argv, "--max-pairs", "5"]) == 0
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 5
    assert all(rows[place]["score"] >= rows[place + 1]["score"] for place in range(4))
    assert rows[0]["text_1"] == TEXTS[rows[0]["row_1"]]
    assert "5 pairs" in capsys.readouterr().err
    assert "<svg" in page.read_text(encoding="utf-8")
    assert main(["paraphrases", *argv]) == 2  # it is there already
    assert "--replace" in capsys.readouterr().err


def test_paraphrases_between_files(folder: Path, tiny_bert: Path) -> None:
    argv = [str(folder / "train.txt"), "--others", str(folder / "texts.txt"), "-m", str(tiny_bert), "--device", "cpu"]
    assert main(["paraphrases", *argv, "-o", str(folder / "a.csv"), "--max-pairs", "1", "--quiet"]) == 0
    with (folder / "a.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["text_1"], row["text_2"]) == ("a green text", "a green text")
    assert main(["paraphrases", *argv, "-o", str(folder / "b.csv"), "--bitext", "--quiet"]) == 0


def test_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, summary, page = folder / "clusters.csv", folder / "summary.jsonl", folder / "page.html"
    argv = [str(folder / "heaps.csv"), "--vectors", str(folder / "heaps.npy"), "--summary", str(summary)]
    assert main(["cluster", *argv, "-o", str(out), "--html", str(page), "--threshold", "0.7"]) == 0
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["cluster"]) for row in rows] == heaps()[1].tolist()
    groups = [json.loads(line) for line in summary.read_text(encoding="utf-8").splitlines()]
    assert [group["size"] for group in groups] == [30, 20, 12]
    assert page.read_text(encoding="utf-8").count("<circle") == 62
    told = capsys.readouterr().err
    assert "clustering 62 texts by communities" in told
    assert "3 clusters, 0 of 62 texts in none" in told


def test_dedupe(folder: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report, page = folder / "kept.csv", folder / "dropped.jsonl", folder / "page.html"
    argv = [str(folder / "texts.txt"), "-o", str(out), "--report", str(report), "--html", str(page)]
    argv += ["--reference", str(folder / "train.txt")]
    assert main(["dedupe", *argv, "--equal-only"]) == 0
    dropped = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    assert [(row["row"], row["kept_in"], row["kept_text"]) for row in dropped] == [
        (1, "reference", "a green text"),
        (6, "input", "a red text"),
    ]
    assert "6 of 8 texts stay" in capsys.readouterr().err
    assert "<b>bold" not in page.read_text(encoding="utf-8")
    more = ["-m", str(tiny_bert), "--device", "cpu", "--threshold", "0.99999", "--keep", "longest", "--replace"]
    assert main(["dedupe", *argv, *more]) == 0
    assert out.read_text(encoding="utf-8").startswith("row,text\n")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["paraphrases", "texts.txt", "-o", "x.csv", "--bitext"], "--bitext needs --others"),
        (["paraphrases", "texts.txt", "-o", "x.csv", "--vectors", "heaps.npy"], "62 vectors, but there are 8 texts"),
        (["paraphrases", "texts.txt", "-o", "x.csv", "--vectors", "texts.txt"], "not a valid .npy file"),
        (["paraphrases", "texts.txt", "-o", "x.csv", "--vectors", "flat.npy"], "not an array of shape (8,)"),
        (["paraphrases", "texts.txt", "-o", "x.csv", "--vectors", "one.npy"], "not an array of shape ()"),
        (["paraphrases", "texts.txt", "-o", "x.csv", "--vectors", "many.npz"], "not an .npz archive"),
        ([*BITEXT, "--max-pairs", "-2"], "--max-pairs must be at least 1, not -2"),
        ([*BITEXT, "--max-neighbours", "3"], "--max-neighbours is not used with --bitext"),
        ([*BITEXT, "--is-exact"], "--is-exact is not used with --bitext"),
        (["cluster", "texts.txt", "-o", "x.csv", "--num-keywords", "0"], "--num-keywords must be at least 1, not 0"),
        (["dedupe", "texts.txt", "-o", "x.csv", "--equal-only", "--threshold", "0.5"], "--threshold is not used with"),
        (["dedupe", "texts.txt", "-o", "x.csv", "--equal-only", "--vectors", "v"], "--vectors is not used with"),
        (["cluster", "texts.txt", "-o", "x.pdf"], "suffix"),
        (["cluster", "texts.txt", "-o", "x.csv", "--summary", "x.csv"], "same name"),
        (["cluster", "empty.txt", "-o", "x.csv"], "no texts in"),
        (["cluster", "texts.txt", "-o", "x.csv", "--threshold", "75"], "a cosine"),
        (["dedupe", "texts.txt", "-o", "x.csv", "--vectors", "heaps.npy", "-m", "m"], "leave --model out"),
        (["dedupe", "texts.txt", "-o", "no/x.csv"], "create it first"),
    ],
)
def test_what_is_wrong(
    argv: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "empty.txt").write_text("", encoding="utf-8")
    np.save(folder / "flat.npy", np.ones(8))
    np.save(folder / "one.npy", np.ones(()))
    np.savez(folder / "many.npz", np.ones((8, 2)))
    assert main(argv) == 2
    assert words in capsys.readouterr().err
    assert not (folder / "x.csv").exists()


@pytest.mark.parametrize("verb", ["paraphrases", "cluster", "dedupe", "keywords", "topics"])
def test_long_work_is_told_in_a_log_too(
    verb: str, folder: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("munjang.progress.MIN_SHOWN_S", 0.0)  # as if it took longer than that
    argv = [verb, str(folder / "texts.txt"), "-m", str(tiny_bert), "--device", "cpu"]
    assert main([*argv, "-o", str(folder / "told.csv")]) == 0
    assert "encoding: " in capsys.readouterr().err
    assert main([*argv, "-o", str(folder / "quiet.csv"), "--quiet"]) == 0
    assert capsys.readouterr().err == ""
