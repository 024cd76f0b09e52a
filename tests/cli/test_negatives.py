"""munjang negatives: files in, a file to train on out, and nothing at all where something is wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang import BiEncoder
from munjang.cli import main
from munjang.data.examples import Examples
from munjang.training.negatives import mine_negatives
from tests.texts import mixed

TEXTS = list(dict.fromkeys(text for text in mixed(60, longest=12) if text.strip()))
ANCHORS, POSITIVES, CORPUS = TEXTS[:10], TEXTS[10:20], TEXTS[20:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(f"{anchor}\t{positive}\n" for anchor, positive in zip(ANCHORS, POSITIVES, strict=True))
    (tmp_path / "pairs.tsv").write_text("anchor\tpositive\n" + rows, encoding="utf-8")
    (tmp_path / "corpus.txt").write_text("\n".join(CORPUS) + "\n", encoding="utf-8")
    return tmp_path


def mine(folder: Path, model: Path, *argv: str, name: str = "out.jsonl") -> int:
    files = [str(folder / "pairs.tsv"), "-o", str(folder / name), "--corpus", str(folder / "corpus.txt")]
    return main(["negatives", *files, "--model", str(model), "--device", "cpu", *argv])


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_as_in_python(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mine(folder, tiny_bert, "--num-negatives", "2", "--rank-from", "1", "--margin", "0.01") == 0
    examples = Examples("pairs", (ANCHORS, POSITIVES))
    model = BiEncoder.load(tiny_bert, device="cpu")
    mined = mine_negatives(model, examples, CORPUS, num_negatives=2, rank_from=1, margin=0.01)
    found = [tuple(row.values()) for row in rows(folder / "out.jsonl")]
    assert found == list(zip(*mined.examples.texts, strict=True))
    said = capsys.readouterr().err
    assert f"{mined.statistics}" in said
    assert f"{len(found)} rows in {folder / 'out.jsonl'}" in said


def test_nothing_found_is_said_and_not_written(
    tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mine(folder, tiny_bert, "--max-score", "-1") == 2
    assert not (folder / "out.jsonl").exists()
    assert "No negative was found" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("layout", "columns"),
    [
        ("triplet", ["anchor", "positive", "negative"]),
        ("columns", ["anchor", "positive", "negative_1", "negative_2", "negative_3"]),
        ("labelled", ["sentence1", "sentence2", "label"]),
    ],
)
def test_layouts(tiny_bert: Path, folder: Path, layout: str, columns: list[str]) -> None:
    assert mine(folder, tiny_bert, "--layout", layout, "--quiet") == 0
    found = rows(folder / "out.jsonl")
    assert list(found[0]) == columns
    assert len(found) == {"triplet": 30, "columns": 10, "labelled": 40}[layout]


def test_a_file_of_options(
    tiny_bert: Path, make: Callable[..., Path], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scorer = make("bert", kind="classifier", num_labels=1)
    toml = f'num_negatives = 1\nrank_to = 20\npick = "random"\nscorer = "{scorer}"\nscorer-margin = -1.0\n'
    (folder / "mine.toml").write_text(toml)
    assert mine(folder, tiny_bert, "--config", str(folder / "mine.toml"), "--num-negatives", "2") == 0
    assert len(rows(folder / "out.jsonl")) == 20  # two of each: the flag won; and no veto, by so wide a margin
    assert mine(folder, tiny_bert, "--config", str(folder / "mine.toml")) == 2
    assert "is already there" in capsys.readouterr().err
    assert mine(folder, tiny_bert, "--config", str(folder / "mine.toml"), "--replace") == 0
    assert len(rows(folder / "out.jsonl")) == 10


def test_dry_run(tiny_bert: Path, make: Callable[..., Path], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scorer = str(make("bert", kind="classifier", num_labels=1))
    assert mine(folder, tiny_bert, "--dry-run", "--scorer", scorer, "--rank-to", "30") == 0
    said = capsys.readouterr().out
    assert "pairs: 10 of " in said
    assert f"candidates: {len(CORPUS):,} distinct texts" in said
    assert f"to encode: {len(TEXTS):,} texts" in said
    assert "40 pairs if it drops none, 310 at most" in said
    assert "at most 30 rows (triplet)" in said
    assert not (folder / "out.jsonl").exists()
    assert mine(folder, Path(scorer), "--dry-run") == 2
    assert "is not a bi-encoder" in capsys.readouterr().err


def test_what_is_refused(tiny_bert: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for argv, told in (
        (["--rank-from", "100"], "rank_from 100 must be below rank_to 100"),
        (["--scorer-margin", "0.1"], "--scorer-margin needs --scorer"),
        (["--columns", "anchor", "nothing"], "'nothing'"),
    ):
        assert mine(folder, tiny_bert, *argv) == 2
        assert told in capsys.readouterr().err
    assert mine(folder, tiny_bert, name="out.xlsx") == 2
    (folder / "corpus.txt").write_text("a\ttab\n")
    assert mine(folder, tiny_bert, name="out.tsv") == 2
    assert "write .csv or .jsonl" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["corpus.txt", "pairs.tsv"]
