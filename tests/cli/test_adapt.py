"""munjang adapt: a domain's texts by every method, and a fine-tuning behind it that goes on after a stop."""

import json
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.cli import main
from tests.training.made import sentences
from tests.training.runs import close, losses, write_tsv

QUIET = ["--device", "cpu", "--quiet", "--log-every", "1"]


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    """A folder of texts of three sentences each."""
    folder = tmp_path / "domain"
    folder.mkdir()
    for number in range(2):
        texts = [f"Of this domain {text}" for text in sentences(12, 10 + number)]
        lines = [". ".join(texts[at : at + 3]) + "." for at in range(0, 12, 3)]
        (folder / f"{number}.txt").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize(
    ("method", "objective"),
    [("masked", "masked"), ("denoising", "denoising"), ("simcse", "simcse"), ("pairs", "in_batch")],
)
def test_methods(tiny_bert: Path, domain: Path, tmp_path: Path, method: str, objective: str) -> None:
    output = tmp_path / "model"
    argv = ["adapt", str(tiny_bert), str(domain), "-o", str(output), "--method", method, *QUIET]
    assert main([*argv, "--epochs", "2", "--learning-rate", "1e-3", "--batch-size", "8"]) == 0
    settings = json.loads((tmp_path / "model.training" / "run.json").read_text())["data"]
    assert [each["objective"] for each in settings.values()] == [objective]
    assert np.isfinite(losses(output)).all()
    before, after = BiEncoder.load(tiny_bert, "cpu"), BiEncoder.load(output, "cpu")
    assert not np.allclose(before.encode(["hello world"]), after.encode(["hello world"]), atol=1e-4)
    assert (output / "README.md").is_file()
    assert (tmp_path / "model.training" / "report.html").is_file()


def test_masked_words_are_learned(tiny_bert: Path, domain: Path, tmp_path: Path) -> None:
    output = tmp_path / "model"
    argv = ["adapt", str(tiny_bert), str(domain), "-o", str(output), "--method", "masked", *QUIET, "--dropout", "0"]
    assert main([*argv, "--epochs", "15", "--learning-rate", "3e-3"]) == 0
    found = losses(output)
    assert np.mean(found[-5:]) < 0.8 * np.mean(found[:3])


def test_then_and_going_on(tiny_bert: Path, domain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two stages, each in a folder of its own; a stop between them is gone on from."""
    pairs = write_tsv(tmp_path / "p.tsv", "anchor positive", zip(sentences(8, 1), sentences(8, 2), strict=True))
    output = tmp_path / "model"
    argv = ["adapt", str(tiny_bert), str(domain), "-o", str(output), *QUIET, "--max-steps", "2"]
    then = ["--then", str(pairs), "--then-objective", "in_batch", "--learning-rate", "1e-3"]
    assert main([*argv, *then]) == 0
    wanted = BiEncoder.load(output, "cpu").encode(["hello world"])
    assert BiEncoder.load(tmp_path / "model.adapted", "cpu").encode(["hello world"]) != pytest.approx(wanted)
    stages = [
        json.loads((tmp_path / f"{name}.training" / "run.json").read_text()) for name in ("model.adapted", "model")
    ]
    assert [next(iter(stage["data"].values()))["objective"] for stage in stages] == ["denoising", "in_batch"]
    assert main([*argv, *then, "--resume"]) == 0  # both are finished
    assert close(BiEncoder.load(output, "cpu").encode(["hello world"]), wanted)
    # stopped between the stages: the first one alone, under the name that it has there
    argv[argv.index(str(output))] = str(tmp_path / "other.adapted")
    assert main([*argv, "--learning-rate", "1e-3"]) == 0
    argv[argv.index(str(tmp_path / "other.adapted"))] = str(tmp_path / "other")
    assert main([*argv, *then]) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert main([*argv, *then, "--resume"]) == 0
    assert close(BiEncoder.load(tmp_path / "other", "cpu").encode(["hello world"]), wanted)


def test_a_file_and_a_dry_run(
    tiny_bert: Path, domain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.toml").write_text(
        f'model = "{tiny_bert}"\ndata = ["{domain}"]\nmethod = "pairs"\ndevice = "cpu"\nbatch_size = 4\nquiet = true\n'
    )
    argv = ["adapt", "--config", str(tmp_path / "run.toml")]
    assert main([*argv, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "24 rows for in_batch" in said  # of each of 8 texts: two neighbours, and the first with the rest
    assert "output: none" in said
    pairs = write_tsv(tmp_path / "p.tsv", "anchor positive", zip(sentences(8, 1), sentences(8, 2), strict=True))
    assert main([*argv, "--dry-run", "--then", str(pairs)]) == 0
    said = capsys.readouterr().out
    assert said.index("24 rows for in_batch") < said.index("then\n") < said.index("8 rows for in_batch")
    assert {path.name for path in tmp_path.iterdir()} == {"domain", "run.toml", "p.tsv"}
    assert main([*argv, "-o", str(tmp_path / "model")]) == 0
    assert len(losses(tmp_path / "model")) == 1  # the log has every tenth update, and the last


def test_what_is_refused(tiny_bert: Path, domain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "short.txt").write_text("One sentence only, without a second\n")
    (tmp_path / "empty.txt").write_text("\n \n")
    output = ["-o", str(tmp_path / "model")]
    for argv, told in (
        ([str(domain)], "Where to?"),
        ([*output], "No texts"),
        ([str(tmp_path / "short.txt"), *output, "--method", "pairs"], "no text has two sentences"),
        ([str(tmp_path / "empty.txt"), *output], "no texts in"),
        ([str(tmp_path / "nothing"), *output], "nothing"),
        ([str(domain), *output, "--objective", "in_batch"], "--then-objective"),
        ([str(domain), *output, "--method", "guess"], "invalid choice"),
        ([str(domain), *output, "--then", str(tmp_path / "nothing.tsv")], "no such file"),
        ([str(domain), *output, "--then", str(domain / "0.txt")], "2 or more wanted"),
        ([str(domain), *output, "--prompts", "q: "], "prompts is about the examples of --then"),
        ([str(domain), *output, "--max-rows", "3"], "max_rows is about the examples of --then"),
    ):
        assert main(["adapt", str(tiny_bert), *argv, *QUIET]) == 2
        assert told in capsys.readouterr().err, argv
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("model")]  # no first stage either
