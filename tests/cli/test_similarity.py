"""munjang similarity: a number, a table, or a score a line."""

import json
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.cross_encoder import CrossEncoder

TEXTS = ["A cat sits.", "고양이가 앉아 있다.", "Stock prices fell.\nAgain."]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["similarity", *arguments]) == 0
    return capsys.readouterr().out


def naive(function: str, a: np.ndarray, b: np.ndarray) -> float:
    return float(
        {
            "cosine": lambda: a @ b / np.linalg.norm(a) / np.linalg.norm(b),
            "dot": lambda: a @ b,
            "euclidean": lambda: -np.linalg.norm(a - b),
            "manhattan": lambda: -np.abs(a - b).sum(),
        }[function]()
    )


@pytest.mark.parametrize("function", ["cosine", "dot", "euclidean", "manhattan"])
def test_two_texts(function: str, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = BiEncoder.load(tiny_bert).encode(TEXTS[:2])
    shown = printed(capsys, *TEXTS[:2], "--model", str(tiny_bert), "--function", function)
    assert float(shown) == pytest.approx(naive(function, first, second), rel=1e-4, abs=1e-5)


def test_default_is_the_models_own(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, *TEXTS[:2], "--model", str(tiny_bert), "--json")
    expected = BiEncoder.load(tiny_bert).similarity(TEXTS[0], TEXTS[1])
    assert json.loads(shown) == {"score": pytest.approx(expected, abs=1e-5)}


def test_table(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = BiEncoder.load(tiny_bert).similarity(TEXTS, TEXTS)
    found = json.loads(printed(capsys, *TEXTS, "--model", str(tiny_bert), "--json"))
    assert found["texts"] == TEXTS
    np.testing.assert_allclose(found["scores"], expected, atol=1e-5)
    header, *rows = printed(capsys, *TEXTS, "--model", str(tiny_bert)).splitlines()
    assert header.split() == ["1", "2", "3"]
    assert len(rows) == 3
    for row, (text, scores) in enumerate(zip(TEXTS, expected, strict=True)):
        assert rows[row].endswith(text.replace("\n", " "))
        assert [float(cell) for cell in rows[row].split()[1:4]] == pytest.approx(list(scores), abs=1e-4)


def test_file(tmp_path: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("sentence1,sentence2\n" + "a cat,고양이\nx,x\n" * 600, encoding="utf-8")
    lines = printed(capsys, "--file", str(pairs), "--model", str(tiny_bert)).splitlines()
    assert len(lines) == 1200
    assert float(lines[0]) == pytest.approx(float(BiEncoder.load(tiny_bert).similarity("a cat", "고양이")), abs=1e-5)
    assert float(lines[1199]) == pytest.approx(1.0, abs=1e-5)
    lines = printed(
        capsys, "--file", str(pairs), "--columns", "sentence2", "sentence1", "--model", str(tiny_bert), "--json"
    ).splitlines()
    assert json.loads(lines[0]) == {
        "a": "고양이",
        "b": "a cat",
        "score": pytest.approx(float(json.loads(lines[2])["score"])),
    }


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["one"], "Give at least two texts, or --file with pairs; 1 given"),
        (["one", "two", "--file", "a.csv"], "Give either texts or --file, not both"),
        (["one", "two", "--format", "csv"], "--columns and --format describe a table"),
        (["one", "two", "--cross", "--function", "dot"], "argument --function: not allowed with argument --cross"),
    ],
)
def test_refused(arguments: list[str], told: str, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["similarity", *arguments, "--model", str(tiny_bert)]) == 2
    assert told in capsys.readouterr().err


@pytest.fixture(params=[1, 3])
def tiny_cross(request: pytest.FixtureRequest, tmp_path: Path, tiny_bert: Path) -> Path:
    folder = tmp_path / "cross"
    CrossEncoder.create(tiny_bert, num_labels=request.param).save(folder)
    return folder


def test_cross(tiny_cross: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scorer = CrossEncoder.load(tiny_cross)
    expected = scorer.predict([(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[0])])
    shown = printed(capsys, *TEXTS[:2], "--cross", "--model", str(tiny_cross))
    assert [float(score) for score in shown.split("\t")] == pytest.approx(np.atleast_1d(expected[0]).tolist(), abs=1e-5)
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        "".join(json.dumps({"query": a, "passage": b}) + "\n" for a, b in [TEXTS[:2], TEXTS[1::-1]]), encoding="utf-8"
    )
    lines = printed(capsys, "--file", str(pairs), "--cross", "--model", str(tiny_cross), "--json").splitlines()
    np.testing.assert_allclose([json.loads(line)["score"] for line in lines], expected, atol=1e-5)


def test_cross_table(tiny_cross: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["similarity", *TEXTS, "--cross", "--json", "--model", str(tiny_cross)]
    scorer = CrossEncoder.load(tiny_cross)
    if scorer.num_labels == 1:
        assert main(arguments) == 0
        expected = scorer.predict([(a, b) for a in TEXTS for b in TEXTS]).reshape(3, 3)
        np.testing.assert_allclose(json.loads(capsys.readouterr().out)["scores"], expected, atol=1e-5)
    else:
        assert main(arguments) == 2
        assert "gives 3 scores for a pair; compare two texts at a time" in capsys.readouterr().err


def test_kinds_are_not_mixed_up(tiny_cross: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["similarity", *TEXTS, "--model", str(tiny_cross)]) == 2
    assert "is a cross-encoder: add --cross" in capsys.readouterr().err
    assert main(["similarity", *TEXTS, "--cross", "--model", str(tiny_bert)]) == 2
    assert "is a bi-encoder" in capsys.readouterr().err
