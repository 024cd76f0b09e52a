"""munjang bench: every type that works is measured, what does not is said."""

import json
from pathlib import Path

import pytest

from munjang.cli import main
from munjang.cli.bench import describe, made_up


def test_json(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--model", str(tiny_bert), "--count", "20", "--rounds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["texts"] == 20
    assert {*found["dtypes"], *found["skipped"]} == {"float32", "bfloat16", "int8"}
    assert found["dtypes"]["float32"]["cosine_to_float32"] == {"min": 1.0, "mean": 1.0}
    for row in found["dtypes"].values():
        assert row["best_texts_per_s"] >= row["texts_per_s"] > 0
        assert row["one_text_ms"] > 0
    assert found["tokenizer_texts_per_s"] > 0


def test_texts_of_a_file(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "texts.txt").write_text("a quick fox\n나는 오늘\nover lazy dogs\n", encoding="utf-8")
    arguments = ["--texts", str(tmp_path / "texts.txt"), "--count", "2", "--rounds", "1", "--dtypes", "float32"]
    assert main(["bench", "--model", str(tiny_bert), *arguments]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].startswith("2 texts of ")
    assert [line.split()[0] for line in shown[4:]] == ["float32", "tokenizer"]


def test_padded_batches_are_timed_beside_packed_ones(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--count", "40", "--rounds", "1", "--dtypes", "float32", "--padded"]
    assert main(["bench", "--model", str(tiny_bert), *arguments]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in shown[6:]] == ["padded", "padded, by length", "packed (ours)"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--count", "0"], "--count and --rounds must be at least 1, not 0 and 3"),
        (["--dtypes", "int3"], "Unknown dtype 'int3'"),
    ],
)
def test_refused(arguments: list[str], said: str, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--model", str(tiny_bert), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_empty_file(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.txt").write_text("")
    assert main(["bench", "--model", str(tiny_bert), "--texts", str(tmp_path / "none.txt")]) == 2
    assert "holds no texts" in capsys.readouterr().err


def test_made_up_texts_differ() -> None:
    assert len(set(made_up(200))) == 200


def test_what_was_skipped_is_shown() -> None:
    record = {"model": "m", "machine": "c", "texts": 1, "tokens_per_text": 3.0, "rounds": 1, "dtypes": {}}
    shown = describe({**record, "tokenizer_texts_per_s": 5, "skipped": {"int8": "no such thing"}})
    assert shown[-1] == "not int8: no such thing"
