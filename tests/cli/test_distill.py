"""munjang distill: vectors of a teacher of any width, parallel texts, fewer layers, a cross-encoder's margins."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder
from munjang.cli import main
from tests.training.made import sentences
from tests.training.runs import losses, write_tsv

QUIET = ["--device", "cpu", "--quiet", "--log-every", "1"]
FIRST, SECOND = sentences(16, 1), sentences(16, 2)


@pytest.fixture
def teacher(make: Callable[..., Path]) -> Path:
    """Another architecture and another width."""
    return make("distilbert", dense=20)


@pytest.fixture
def parallel(tmp_path: Path) -> Path:
    return write_tsv(tmp_path / "parallel.tsv", "en ko", zip(FIRST, SECOND, strict=True))


def test_parallel_texts_and_another_width(tiny_bert: Path, teacher: Path, parallel: Path, tmp_path: Path) -> None:
    """teacher(en) ≈ map(student(en)) ≈ map(student(ko)): the two of a row come together, and the map is dropped."""
    output = tmp_path / "model"
    argv = ["distill", str(tiny_bert), str(parallel), "--teacher", str(teacher), "-o", str(output), *QUIET]
    assert main([*argv, "--epochs", "40", "--learning-rate", "3e-3", "--batch-size", "16", "--dropout", "0"]) == 0
    found = losses(output)
    assert found[-1] < 0.5 * found[0]
    student, before = BiEncoder.load(output, "cpu"), BiEncoder.load(tiny_bert, "cpu")
    assert student.width == 32
    near = [np.mean((each.encode(FIRST) - each.encode(SECOND)) ** 2) for each in (student, before)]
    assert near[0] < 0.7 * near[1]
    settings = json.loads((tmp_path / "model.training" / "run.json").read_text())["data"]["0 " + str(parallel)]
    assert settings["options"] == {"target": "first"}
    assert settings["head"] == {"projection.weight": [20, 32], "projection.bias": [20]}
    assert (output / "README.md").is_file()
    assert (tmp_path / "model.training" / "report.html").is_file()


def test_fewer_layers_of_itself(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three layers, taught by the whole: closer to it than without a lesson."""
    (tmp_path / "texts.txt").write_text("\n".join(FIRST) + "\n")
    output = tmp_path / "model"
    argv = ["distill", str(tiny_bert), str(tmp_path / "texts.txt"), "--teacher", str(tiny_bert), "-o", str(output)]
    argv += ["--layers", "2", *QUIET, "--dropout", "0", "--batch-size", "16", "--learning-rate", "1e-3"]
    assert main([*argv, "--epochs", "30"]) == 0
    assert json.loads((output / "config.json").read_text())["num_hidden_layers"] == 2
    found = losses(output)
    assert found[-1] < 0.5 * found[0]
    student, whole = BiEncoder.load(output, "cpu"), BiEncoder.load(tiny_bert, "cpu")
    assert np.mean((student.encode(FIRST) - whole.encode(FIRST)) ** 2) < 1.1 * found[-1]
    assert main([*argv, "--epochs", "30", "--resume"]) == 0
    assert main([*argv, "--layers", "4", "-o", str(tmp_path / "other")]) == 2
    assert "between 1 and the model's 3, not 4" in capsys.readouterr().err


def test_margins_of_a_cross_encoder(make: Callable[..., Path], tiny_bert: Path, tmp_path: Path) -> None:
    data = write_tsv(tmp_path / "t.tsv", "anchor positive negative", zip(FIRST, SECOND, sentences(16, 3), strict=True))
    teacher, output = make("bert", kind="cross", num_labels=1), tmp_path / "model"
    argv = ["distill", str(tiny_bert), str(data), "--teacher", str(teacher), "-o", str(output), *QUIET]
    assert main([*argv, "--epochs", "2", "--batch-size", "8"]) == 0
    settings = json.loads((tmp_path / "model.training" / "run.json").read_text())["data"]
    assert [each["objective"] for each in settings.values()] == ["margin_mse"]
    # by hand, without dropout before the first update
    scores = [
        CrossEncoder.load(teacher, "cpu").predict(list(zip(FIRST, other, strict=True)), activation="Identity")
        for other in (SECOND, sentences(16, 3))
    ]
    vectors = [BiEncoder.load(tiny_bert, "cpu").encode(each) for each in (FIRST, SECOND, sentences(16, 3))]
    own = (vectors[0] * vectors[1]).sum(1) - (vectors[0] * vectors[2]).sum(1)
    wanted = np.mean((own - (scores[0] - scores[1])) ** 2)
    again = [*argv[:-6], str(tmp_path / "again"), *QUIET]
    assert main([*again, "--dropout", "0", "--max-steps", "1", "--batch-size", "16"]) == 0
    assert losses(tmp_path / "again") == pytest.approx([wanted], rel=1e-4)


def test_a_file_and_a_dry_run(
    tiny_bert: Path, teacher: Path, parallel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One dataset of two takes no teacher, which is no reason to refuse."""
    output = tmp_path / "model"
    (tmp_path / "run.toml").write_text(
        f'model = "{tiny_bert}"\nteacher = "{teacher}"\noutput = "{output}"\ndevice = "cpu"\nmax_steps = 2\n'
        f'quiet = true\n[[datasets]]\ndata = "{parallel}"\n[[datasets]]\ndata = "{parallel}"\nobjective = "in_batch"\n'
    )
    assert main(["distill", "--config", str(tmp_path / "run.toml"), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "16 rows for embedding_mse" in said
    assert "16 rows for in_batch" in said
    assert {path.name for path in tmp_path.iterdir()} == {"parallel.tsv", "run.toml"}
    assert main(["distill", "--config", str(tmp_path / "run.toml")]) == 0
    assert BiEncoder.load(output, "cpu").width == 32


def test_what_is_refused(
    make: Callable[..., Path], tiny_bert: Path, parallel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cross = str(make("bert", kind="cross", num_labels=1))
    output = ["-o", str(tmp_path / "model")]
    for argv, told in (
        ([*output], "--teacher"),
        (["--teacher", str(tiny_bert)], "Where to?"),
        (["--teacher", "/nowhere", *output], "/nowhere"),
        (["--teacher", cross, *output], "3 or more wanted"),  # margins need a negative
        (["--teacher", cross, *output, "--objective", "embedding_mse"], "cross-encoder, which gives scores"),
        (["--teacher", str(tiny_bert), *output, "--objective", "cosent"], "bi-encoder, which gives vectors"),
    ):
        assert main(["distill", str(tiny_bert), str(parallel), *argv, *QUIET]) == 2
        assert told in capsys.readouterr().err, argv
    assert not (tmp_path / "model").exists()


def test_static(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of a plain file and of both columns of a table; the model is small and gives unit vectors."""
    (tmp_path / "texts.txt").write_text("\n".join(sentences(40, 5)), encoding="utf-8")
    table = write_tsv(tmp_path / "t.tsv", "en ko", zip(sentences(20, 6), sentences(20, 7), strict=True))
    argv = ["distill", str(tiny_bert), str(tmp_path / "texts.txt"), str(table), "--static", "--device", "cpu"]
    output = tmp_path / "static"
    assert main([*argv, "-o", str(output), "--dimensions", "8", "--refine-epochs", "1"]) == 0
    assert "80 texts of" in capsys.readouterr().err
    vectors = BiEncoder.load(output, "cpu").encode(FIRST)
    assert vectors.shape == (len(FIRST), 8)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    for more, told in (
        (["--epochs", "3"], "epochs is not for --static; it takes static, model"),
        (["--dimensions", "99"], "between 1 and the teacher's 32"),
        ([], "80 texts are too few for 256"),
    ):
        given = more if "--dimensions" in more or not more else [*more, "--dimensions", "8"]
        assert main([*argv, "-o", str(tmp_path / "other"), *given]) == 2
        assert told in capsys.readouterr().err or not more
    assert main([*argv[:2], str(table), "--teacher", str(tiny_bert), "-o", "x", "--dimensions", "8"]) == 2
    assert "dimensions is for --static" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
