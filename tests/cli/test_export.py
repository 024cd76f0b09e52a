"""munjang export: what it writes loads again, what it says is measured, what fails leaves nothing."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder, CrossEncoder
from munjang.cli import main
from munjang.errors import InputError

TEXTS = ["a fox", "", "서울은 대한민국의 수도이며 인구가 많다"]


@pytest.mark.parametrize(("dtype", "least"), [("float32", 0.99999), ("int8", 0.97)])
def test_onnx(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], dtype: str, least: float) -> None:
    target = tmp_path / "onnx"
    assert main(["export", str(tiny_bert), "--to", "onnx", "-o", str(target), "--dtype", dtype]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{target}: ")
    found = re.search(r"smallest cosine ([\d.]+), mean ([\d.]+) over \d+ texts", said)
    assert found is not None
    assert least <= float(found[1]) <= float(found[2]) <= 1.000001
    assert (BiEncoder.load(target).encode(TEXTS) * BiEncoder.load(tiny_bert).encode(TEXTS)).sum(axis=1).min() >= least
    assert main(["info", str(target)]) == 0
    assert "onnxruntime (padded)" in capsys.readouterr().out


def test_cross_encoder(make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make("bert", kind="classifier", num_labels=1)
    assert main(["export", str(source), "--to", "onnx", "-o", str(tmp_path / "onnx")]) == 0
    assert "largest difference of a score" in capsys.readouterr().out
    pairs = [("a fox", "a dog"), ("서울", "")]
    scores = CrossEncoder.load(tmp_path / "onnx").predict(pairs)
    assert np.abs(scores - CrossEncoder.load(source).predict(pairs)).max() < 1e-5


def test_sentence_transformers(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "folder"
    assert main(["export", str(tiny_bert), "--to", "sentence-transformers", "-o", str(target)]) == 0
    assert capsys.readouterr().out.startswith(f"{target}: ")
    theirs = SentenceTransformer(str(target), device="cpu").encode(TEXTS)
    assert np.abs(theirs - BiEncoder.load(tiny_bert).encode(TEXTS)).max() < 1e-5


def test_munjang_int8(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "folder"
    assert main(["export", str(tiny_bert), "--to", "munjang-int8", "-o", str(target)]) == 0
    assert capsys.readouterr().out.startswith(f"{target}: ")
    assert main(["info", str(target)]) == 0
    assert "munjang-int8" in capsys.readouterr().out
    vectors = BiEncoder.load(target).encode(TEXTS)
    assert (vectors * BiEncoder.load(tiny_bert).encode(TEXTS)).sum(axis=1).min() > 0.97
    assert main(["export", str(target), "--to", "sentence-transformers", "-o", str(tmp_path / "float")]) == 0
    theirs = SentenceTransformer(str(tmp_path / "float"), device="cpu").encode(TEXTS)
    assert np.abs(theirs - vectors).max() < 1e-5


def test_prune(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "corpus.txt").write_text("a fox\n\n", encoding="utf-8")
    (tmp_path / "pairs.tsv").write_text(f"sentence1\tsentence2\tscore\n{TEXTS[2]}\ta dog\t1\n", encoding="utf-8")
    corpora = ["--prune", str(tmp_path / "corpus.txt"), str(tmp_path / "pairs.tsv")]
    vectors = BiEncoder.load(tiny_bert, device="cpu").encode(TEXTS)
    for number, more in enumerate(([], ["--to", "munjang-int8"], ["--to", "onnx"])):
        target = tmp_path / str(number)
        assert main(["export", str(tiny_bert), "-o", str(target), *corpora, *more]) == 0
        said = capsys.readouterr().out
        found = re.search(r"(\d+) tokens before, (\d+) after .* 100\.0000% of 4 texts", said)
        assert found is not None
        small = BiEncoder.load(target, device="cpu")
        assert small.info()["vocabulary"] == int(found[2]) < int(found[1])
        cosines = (small.encode(TEXTS) * vectors).sum(axis=1)
        assert cosines.min() > (0.9 if "munjang-int8" in more else 0.99999)
    assert main(["export", str(tiny_bert), "-o", str(tmp_path / "x"), *corpora, "--prune-columns", "none"]) == 2
    assert "'none'" in capsys.readouterr().err
    assert main(["export", str(tiny_bert), "-o", str(tmp_path / "x"), "--to", "onnx", "--min-count", "2"]) == 2
    assert "go with --prune" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_prune_a_cross_encoder(make: Callable[..., Path], tmp_path: Path) -> None:
    source = make("bert", kind="classifier", num_labels=1)
    (tmp_path / "corpus.txt").write_text("a fox\na dog", encoding="utf-8")
    assert main(["export", str(source), "-o", str(tmp_path / "out"), "--prune", str(tmp_path / "corpus.txt")]) == 0
    pairs = [("a fox", "a dog"), ("a dog", "")]
    scores = CrossEncoder.load(tmp_path / "out", device="cpu").predict(pairs)
    assert np.abs(scores - CrossEncoder.load(source, device="cpu").predict(pairs)).max() < 1e-6


def test_what_does_not_fit(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "out")
    for format in ("sentence-transformers", "munjang-int8"):
        assert main(["export", str(tiny_bert), "--to", format, "-o", target, "--dtype", "int8"]) == 2
        assert "--dtype int8 goes with --to onnx" in capsys.readouterr().err
    assert main(["export", str(tiny_bert), "--to", "tflite", "-o", target]) == 2
    assert main(["export", str(tiny_bert), "-o", target, "--dtype", "int8"]) == 2
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("mine")
    capsys.readouterr()
    assert main(["export", str(tiny_bert), "--to", "onnx", "-o", str(tmp_path / "taken")]) == 2
    assert "holds other files and no model" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taken"]
    assert main(["export", str(tmp_path / "none"), "--to", "onnx", "-o", target]) == 2


def test_levelled(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, target = [f"text {at} of the {word}" for at in range(30) for word in ("fox", "수도")], tmp_path / "level"
    (tmp_path / "texts.txt").write_text("\n".join([*texts, *texts]), encoding="utf-8")
    assert main(["export", str(tiny_bert), "--level", str(tmp_path / "texts.txt"), "-o", str(target)]) == 0
    said = capsys.readouterr().out
    found = re.search(
        r"60 texts: a cosine of ([\d.]+) becomes 0; different texts have ([-\d.]+), before ([\d.]+)", said
    )
    assert found is not None
    before, after = BiEncoder.load(tiny_bert), BiEncoder.load(target)
    for model, mean in ((after, float(found[2])), (before, float(found[3]))):
        assert model.similarity(texts, texts)[~np.eye(60, dtype=bool)].mean() == pytest.approx(mean, abs=0.006)
    middle, cosines = float(found[1]), before.similarity(texts, texts)
    assert 0.1 < middle < cosines.mean() + 0.1
    np.testing.assert_allclose(
        after.similarity(texts, texts).mean(), (cosines.mean() - middle) / (1 - middle), atol=0.1
    )
    assert after.fingerprint != before.fingerprint
    theirs = SentenceTransformer(str(target), device="cpu").encode(texts)
    assert np.abs(theirs - after.encode(texts)).max() < 1e-5
    before.calibrate(texts, one_range=True)
    assert before.level(texts) == pytest.approx(middle, abs=1e-3)  # in memory
    assert before.ranges is not None, "measured again, one for all dimensions"
    assert (before.ranges == before.ranges[:, :1]).all()
    assert np.abs(before.encode(texts)).max() == pytest.approx(before.ranges.max(), abs=0.01)
    assert before.fingerprint == after.fingerprint
    np.testing.assert_allclose(before.encode(texts), after.encode(texts), atol=1e-6)


def test_level_vectors_stay(
    tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("munjang.vectors.level.MIN_MIDDLE", 0.99)
    texts, target = [f"text {at} of the {word}" for at in range(30) for word in ("fox", "수도")], tmp_path / "same"
    (tmp_path / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    assert main(["export", str(tiny_bert), "--level", str(tmp_path / "texts.txt"), "-o", str(target)]) == 0
    assert "60 texts have nothing in common" in capsys.readouterr().out
    before, after = BiEncoder.load(tiny_bert), BiEncoder.load(target)
    assert after.fingerprint == before.fingerprint
    np.testing.assert_allclose(after.encode(texts), before.encode(texts), atol=1e-6)


def test_what_cannot_be_levelled(
    tiny_bert: Path, make: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "few.txt").write_text("one\ntwo", encoding="utf-8")
    scorer = make("bert", kind="classifier", num_labels=1)
    for model, reason in ((tiny_bert, "got 2"), (scorer, "a cross-encoder has no vectors")):
        assert main(["export", str(model), "--level", str(tmp_path / "few.txt"), "-o", str(tmp_path / "out")]) != 0
        assert reason in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
    model = BiEncoder.load(tiny_bert)
    model.similarity_name = "dot"
    with pytest.raises(InputError, match="'dot'"):
        model.level(["one", "two"])
