"""munjang train: flags and a file say the same, a dry run writes nothing, a run goes on."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder, CrossEncoder, Dataset, train
from munjang.cli import main
from munjang.cli.train import settings
from munjang.objectives import OBJECTIVES
from tests.training.made import sentences
from tests.training.runs import close, quiet, read_log, write_sts, write_tsv

QUIET = ["--device", "cpu", "--quiet", "--log-every", "1"]
TEXTS = sentences(6, 50)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    a, b = sentences(12, 1), sentences(12, 2)
    labels = ["entailment", "neutral", "contradiction"] * 4
    write_tsv(tmp_path / "nli.tsv", "premise hypothesis label", zip(a, b, labels, strict=True))
    write_tsv(tmp_path / "pairs.tsv", "anchor positive", zip(b, a, strict=True))
    write_tsv(tmp_path / "scored.tsv", "left right rating", zip(a, b, [1, 3, 5, 2] * 3, strict=True))
    write_sts(tmp_path / "dev.tsv")
    return tmp_path


def test_flags_as_in_python(tiny_bert: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = files / "model"
    argv = ["train", str(tiny_bert), str(files / "nli.tsv"), "-o", str(output), "--device", "cpu", "--batch-size", "4"]
    argv += ["--learning-rate", "1e-3", "--set", "concatenation=|u-v|", "--evaluate", str(files / "dev.tsv")]
    assert main(argv) == 0
    said = capsys.readouterr().err
    assert "update 3: dev spearman_cosine " in said
    assert "nli.tsv: 0 of 12 rows dropped" in said
    assert f"the model is in {output}, the report in {output}.training/report.html" in said
    assert (files / "model.training" / "report.html").is_file()
    assert (output / "README.md").is_file()
    model = BiEncoder.load(tiny_bert, "cpu")
    config = quiet(batch_size=4, learning_rate=1e-3, evaluate=(str(files / "dev.tsv"),))
    train(model, files / "nli.tsv", "classification", config, {"concatenation": "|u-v|"})
    assert close(BiEncoder.load(output, "cpu").encode(TEXTS), model.encode(TEXTS))


def test_columns_and_ranges_by_flags(tiny_bert: Path, files: Path) -> None:
    argv = ["train", str(tiny_bert), str(files / "scored.tsv"), "-o", str(files / "model"), *QUIET, "--max-rows", "8"]
    argv += ["--objective", "regression", "--texts", "left", "right", "--score", "rating", "--score-range", "1", "5"]
    assert main([*argv, "--pooling", "cls", "--prompts", "a: ", "b: "]) == 0
    assert (
        BiEncoder.load(files / "model", "cpu").info()["pooling"]
        == BiEncoder.load(tiny_bert, "cpu", pooling="cls").info()["pooling"]
    )
    data = json.loads((files / "model.training" / "run.json").read_text())["data"]
    assert [(each["rows"], each["prompts"]) for each in data.values()] == [(8, ["a: ", "b: "])]


def test_a_name_that_does_not_tell_its_format(tiny_bert: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "pairs.tsv").rename(files / "pairs.data")
    argv = ["train", str(tiny_bert), str(files / "pairs.data"), "--dry-run", *QUIET, "--objective", "in_batch"]
    assert main(argv) == 2
    assert "give --format (format=)" in capsys.readouterr().err
    assert main([*argv, "--format", "tsv"]) == 0
    assert "12 rows for in_batch" in capsys.readouterr().out


def test_a_file_with_several_datasets(tiny_bert: Path, files: Path) -> None:
    """As in Python; a flag wins over the file."""
    (files / "run.toml").write_text(
        f'model = "{tiny_bert}"\noutput = "{files / "unused"}"\nlearning-rate = 1e-3\nbatch_size = 4\nquiet = true\n'
        f'device = "cpu"\nmixing = "round_robin"\n\n'
        f'[[datasets]]\ndata = "{files / "nli.tsv"}"\nobjective = "classification"\n\n'
        f'[[datasets]]\ndata = "{files / "pairs.tsv"}"\nobjective = "in_batch"\nbatch_size = 6\n'
        f'options = {{temperature = 0.1}}\nprompts = ["q: ", ""]\nreading = {{max_rows = 10}}\n'
    )
    output = files / "model"
    assert main(["train", "--config", str(files / "run.toml"), "-o", str(output)]) == 0
    assert not (files / "unused").exists()
    model = BiEncoder.load(tiny_bert, "cpu")
    datasets = [
        Dataset(data=str(files / "nli.tsv"), objective="classification"),
        Dataset(
            data=str(files / "pairs.tsv"),
            objective="in_batch",
            batch_size=6,
            options={"temperature": 0.1},
            prompts=("q: ", ""),
            reading={"max_rows": 10},
        ),
    ]
    train(model, datasets, config=quiet(learning_rate=1e-3, batch_size=4, mixing="round_robin"))
    assert close(BiEncoder.load(output, "cpu").encode(TEXTS), model.encode(TEXTS))


def test_dry_run(tiny_bert: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(files.rglob("*"))
    argv = ["train", str(tiny_bert), str(files / "nli.tsv"), "--dry-run", "--device", "cpu", "--batch-size", "5"]
    assert main([*argv, "--epochs", "2", "--evaluate", str(files / "dev.tsv"), "-o", str(files / "model")]) == 0
    said = capsys.readouterr().out
    for told in (
        "model: bi-encoder, 0.0 million weights, on cpu",
        "12 rows for classification",
        "premise: ",
        "labels: contradiction 4, entailment 4, neutral 4",
        "batches of 5, sampler random",
        "6 updates (2 epochs), highest rate 2e-05",
        f"evaluation: {files / 'dev.tsv'}",
        f"output: {files / 'model'}",
    ):
        assert told in said
    assert sorted(files.rglob("*")) == before
    assert main([*argv, "--evaluate", str(files / "missing.tsv")]) == 2
    assert "missing.tsv: no such file" in capsys.readouterr().err


def test_objectives(tiny_bert: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(tiny_bert), "--objectives"]) == 0
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if not line.startswith(" ")] == list(OBJECTIVES)
    assert "takes: 2+ text columns, texts; settings: temperature, is_symmetric, guide_margin" in said
    assert main(["train", "--objectives"]) == 0  # without a model: there is nothing to load
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("verb", ["train", "distill", "adapt"])
def test_help_without_torch(verb: str) -> None:
    code = (
        "import sys; from munjang.cli import main; code = main([sys.argv[1], '--help']); "
        "assert not {'torch', 'numpy', 'accelerate', 'tokenizers'} & set(sys.modules); raise SystemExit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, verb], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "--learning-rate" in done.stdout


def test_a_new_cross_encoder_goes_on_after_a_stop(tiny_bert: Path, files: Path) -> None:
    """Its head is drawn from the seed: the second call begins with the same model."""
    output = files / "model"
    argv = ["train", str(tiny_bert), str(files / "nli.tsv"), "-o", str(output), *QUIET, "--objective", "cross_entropy"]
    argv += ["--cross", "--batch-size", "4"]
    assert main(argv) == 0
    model = CrossEncoder.load(output, "cpu")
    assert model.num_labels == 3  # as many as the file has
    scores = model.predict(("a", "b"))
    assert main([*argv, "--resume"]) == 0
    assert close(CrossEncoder.load(output, "cpu").predict(("a", "b")), scores)
    assert main([*argv, "--seed", "5", "-o", str(files / "other")]) == 0
    assert not np.allclose(CrossEncoder.load(files / "other", "cpu").predict(("a", "b")), scores, atol=1e-6)


def test_a_stopped_run_goes_on(tiny_bert: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stopped after two of three updates, as its folder tells; another batch size is refused."""
    output = files / "model"
    argv = ["train", str(tiny_bert), str(files / "pairs.tsv"), "-o", str(output), *QUIET, "--objective", "in_batch"]
    argv += ["--batch-size", "4"]
    assert main([*argv, "--resume"]) == 2
    assert "There is no run to resume" in capsys.readouterr().err
    assert main(argv) == 0
    assert main(argv) == 2
    assert "holds a run already; resume it (resume=True, --resume)" in capsys.readouterr().err
    assert main([*argv, "--resume", "--batch-size", "3"]) == 2
    assert "batch_size was 4, is now 3" in capsys.readouterr().err
    assert main([*argv, "--resume"]) == 0
    assert [line["step"] for line in read_log(output)] == [1, 2, 3]


def test_what_is_refused(tiny_bert: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, output = str(files / "pairs.tsv"), ["-o", str(files / "model")]
    (files / "two.toml").write_text(f'[[datasets]]\ndata = "{pairs}"\nobjective = "in_batch"\n')
    (files / "key.toml").write_text(f'[[datasets]]\ndata = "{pairs}"\nobjectve = "in_batch"\n')
    two, key = ["--config", str(files / "two.toml")], ["--config", str(files / "key.toml")]
    for argv, told in (
        ([pairs], "Where to? Give -o OUT"),
        ([*output], "No data: give files"),
        ([pairs, *output, "--objective", "in_bach"], "Did you mean 'in_batch'"),
        ([pairs, *output, "--objective", "in_batch", "--set", "temperature"], "expected KEY=VALUE"),
        ([pairs, *output, "--objective", "in_batch", "--set", "heat=1"], "Unknown option of in_batch 'heat'"),
        ([pairs, *output, "--objective", "cross_bce"], "trains a cross-encoder, this is a bi-encoder"),
        ([pairs, *output, "--objective", "in_batch", "--learning-rate", "-1"], "learning_rate must be"),
        ([pairs, *output, *two], "on the command line and as [[datasets]]"),
        ([*output, *two, "--set", "temperature=1"], "has options = {...}"),
        ([*output, *key], "Unknown key of [[datasets]] 'objectve'"),
        ([pairs, *output, "--objective", "in_batch", "--set", "temperature=hot"], "options of in_batch"),
        ([str(files / "nothing.tsv"), *output], "no such file"),
        ([pairs, *output, "--objective", "in_batch", "--num-labels", "3"], "num_labels is for a new cross-encoder"),
        (
            [pairs, *output, "--objective", "cross_in_batch", "--cross", "--pooling", "cls"],
            "pooling is of a bi-encoder",
        ),
    ):
        assert main(["train", str(tiny_bert), *argv, *QUIET]) == 2
        assert told in capsys.readouterr().err, argv
    assert not (files / "model").exists()
    (files / "no-model.toml").write_text(f'data = ["{pairs}"]\n')
    assert main(["train", "--config", str(files / "no-model.toml"), *output]) == 2
    assert "No model: give its folder" in capsys.readouterr().err


def test_bad_rows_are_listed_one_a_line(tiny_bert: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = write_tsv(files / "bad.tsv", "anchor positive", [("a", "b"), ("c", ""), (" ", "d")])
    argv = ["train", str(tiny_bert), str(bad), "-o", str(files / "model"), *QUIET, "--objective", "in_batch"]
    assert main(argv) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"munjang: {bad}: 2 of 3 rows are bad; repair or drop:",
        f"  {bad}, line 3: 'positive' is empty",
        f"  {bad}, line 4: 'anchor' is blank",
    ]


TABLES = {
    'objective = "in_batch"': "has no data",
    'data = DATA\nobjective = "in_batch"\nbatch_size = "4"': "batch_size of [[datasets]] should be of type int",
    'data = DATA\nobjective = "in_batch"\nbatch_size = 0': "at least 1 example",
    'data = DATA\nobjective = "in_batch"\noptions = ["a"]': "options of [[datasets]] should be of type dict",
    'data = DATA\nobjective = "in_batch"\nreading = {textss = ["a"]}': "Did you mean 'texts'",
    'data = DATA\nobjective = "in_batch"\nreading = {max_rows = "a"}': "max_rows of reading of [[datasets]] should be",
    'data = DATA\nobjective = "in_batch"\nprompts = "q: "': "2 text columns, but 1 prompts",
    'data = 3\nobjective = "in_batch"': "data of [[datasets]] should be a list",
    'data = DATA\nobjective = ["in_batch"]': "objective of [[datasets]] should be of type str",
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_that_are_refused(tiny_bert: Path, files: Path, table: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = f'"{files / "pairs.tsv"}"'
    (files / "run.toml").write_text(f"[[datasets]]\n{table.replace('DATA', data)}\n")
    argv = ["train", str(tiny_bert), "--config", str(files / "run.toml"), "-o", str(files / "model"), *QUIET]
    assert main(argv) == 2
    assert TABLES[table] in capsys.readouterr().err
    assert not (files / "model").exists()


def test_settings_are_numbers_where_they_look_so() -> None:
    found = settings(["margin=0.5", "distance=cosine", "is_symmetric=true", "k=3", 'name="3"', "parts=u,v"])
    assert found == {"margin": 0.5, "distance": "cosine", "is_symmetric": True, "k": 3, "name": "3", "parts": "u,v"}
