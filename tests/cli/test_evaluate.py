"""munjang evaluate: models side by side, from the command line to the files it writes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.evaluation import evaluate


@pytest.fixture
def sts(tmp_path: Path) -> Path:
    path = tmp_path / "small-sts.tsv"
    rows = ["a quick fox\tlazy dogs\t1", "나는 오늘\t오늘 나는\t4.5", "over\tjumps\t2", "the radio\tthe radio\t5"]
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def nli(tmp_path: Path) -> Path:
    path = tmp_path / "small-nli.tsv"
    rows = ["a fox\tdogs\tneutral", "나는\t오늘\tentailment", "over\tjumps\tcontradiction"]
    path.write_text("\n".join(["premise\thypothesis\tlabel", *rows]) + "\n", encoding="utf-8")
    return path


def test_one_model_one_file(tiny_bert: Path, sts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tiny_bert), "--data", str(sts), "--score-range", "0", "5"]) == 0
    out, err = capsys.readouterr()
    report = evaluate(BiEncoder.load(tiny_bert), sts)
    assert out.splitlines()[0].split() == ["dataset", "kind", "rows", "metric", tiny_bert.name]
    assert out.splitlines()[1].split() == ["small-sts", "sts", "4", "spearman_cosine", f"{100 * report.score:.2f}"]
    assert "pearson_manhattan" in out  # every metric
    assert f"{tiny_bert.name} on small-sts (sts, 4 rows): spearman_cosine" in err


def test_side_by_side(
    make: Callable[..., Path], tmp_path: Path, sts: Path, nli: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = [make("bert"), make("bert", pooling="cls")]
    capsys.readouterr()  # what the making of models said
    record, shown = tmp_path / "report.json", tmp_path / "report.html"
    arguments = ["--data", str(sts), str(nli), "--train", str(nli), "--json", str(record), "--html", str(shown)]
    assert main(["evaluate", *map(str, models), *arguments, "--quiet"]) == 0
    out, err = capsys.readouterr()
    reports = json.loads(record.read_text(encoding="utf-8"))
    assert [(each["model"], each["dataset"], each["kind"]) for each in reports] == [
        (model.name, *dataset) for model in models for dataset in (("small-sts", "sts"), ("small-nli", "nli"))
    ]
    assert [line.split()[0] for line in out.split("\n\n")[0].splitlines()] == ["dataset", "small-sts", "small-nli"]
    assert "small-nli: " in out.split("\n\n")[1]  # which of the two is better, and whether that is chance
    assert reports[1]["interval"][0] <= reports[1]["metrics"]["accuracy"] <= reports[1]["interval"][1]
    assert err == ""
    values = [f"{100 * each['metrics'][each['main']]:.2f}" for each in reports if each["kind"] == "sts"]
    assert out.splitlines()[1].split()[-2:] == values
    assert shown.read_text(encoding="utf-8").count('role="img"') == 1


def test_cross_encoder(make: Callable[..., Path], sts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cross = make("bert", kind="cross", num_labels=1)
    assert main(["evaluate", str(cross), "--data", str(sts), "--quiet"]) == 0
    assert "spearman " in capsys.readouterr().out
    assert main(["evaluate", str(cross), "--data", str(sts), "--truncate-dim", "8"]) == 2
    assert "no --truncate-dim" in capsys.readouterr().err
    assert main(["evaluate", str(cross), "--data", str(sts), "--kind", "translation"]) == 2
    assert "translation needs vectors, and a cross-encoder has none" in capsys.readouterr().err


def test_share_of_a_re_ranker(make: Callable[..., Path], tiny_bert: Path, tmp_path: Path) -> None:
    cross, folder = make("bert", kind="cross", num_labels=1), tmp_path / "set"
    folder.mkdir()
    texts = ["a quick fox", "나는 오늘 학교에", "lazy dogs", "the radio", "over the fence", "a slow fox jumps"]
    tables = {
        "corpus": ["id\ttext", *(f"d{place}\t{text}" for place, text in enumerate(texts))],
        "queries": ["id\ttext", "1\tthe fox", "2\t오늘"],
        "qrels": ["query_id\tcorpus_id\tscore", "1\td5\t1", "2\td1\t1"],
    }
    for name, lines in tables.items():
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = ["evaluate", str(cross), "--data", str(folder), "--kind", "reranking", "--first-stage", str(tiny_bert)]
    for share in ("0", "0.5"):
        out = tmp_path / f"{share}.json"
        assert main([*asked, "--rerank-weight", share, "--json", str(out), "--quiet"]) == 0
        (record,) = json.loads(out.read_text(encoding="utf-8"))
        assert any(f"a weight of {share} in the order" in note for note in record["notes"])
        assert (record["metrics"]["map"] == record["metrics"]["before_map"]) or share == "0.5"


def test_model_options_change_the_vectors(tiny_bert: Path, sts: Path, tmp_path: Path) -> None:
    found = {}
    for name, more in {"plain": [], "cut": ["--truncate-dim", "4"], "pooled": ["--pooling", "max"]}.items():
        path = tmp_path / f"{name}.json"
        assert main(["evaluate", str(tiny_bert), "--data", str(sts), "--json", str(path), "--quiet", *more]) == 0
        found[name] = json.loads(path.read_text())[0]["metrics"]["pearson_cosine"]
    assert len(set(found.values())) == 3
    model = BiEncoder.load(tiny_bert)
    model.truncate_dim = 4
    assert found["cut"] == pytest.approx(evaluate(model, sts).metrics["pearson_cosine"], abs=1e-6)


def test_dry_run_needs_no_torch(sts: Path, nli: Path) -> None:
    arguments = ["evaluate", "any/model", "--data", str(sts), str(nli), "--dry-run"]
    code = f"import sys; from munjang.cli import main; code = main({arguments}); print('torch' in sys.modules, code)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.split() for line in done.stdout.splitlines()[1:3]] == [
        ["small-sts", "sts", "4", "spearman_cosine", "or", "spearman"],
        ["small-nli", "nli", "3", "accuracy"],
    ]
    assert "small-nli: cross-encoders alone can be measured; a bi-encoder needs rows to train on" in done.stdout
    assert done.stdout.splitlines()[-1] == "False 0"


def test_config_file(tiny_bert: Path, sts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "evaluate.toml"
    config.write_text(f'models = ["{tiny_bert}"]\ndata = ["{sts}"]\nmax_rows = 3\nquiet = true\n')
    assert main(["evaluate", "--config", str(config)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2] == "3"
    assert main(["evaluate", "--config", str(config), "--max-rows", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2] == "2"


def test_files_of_one_name_keep_their_paths(tiny_bert: Path, sts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = sts.parent / "other" / sts.name
    other.parent.mkdir()
    other.write_bytes(sts.read_bytes())
    assert main(["evaluate", str(tiny_bert), "--data", str(sts), str(other), "--quiet"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == [str(sts), str(other)]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--kind", "stsb"], "Unknown kind 'stsb'"),
        (["--json", "no/such/folder/out.json"], "The folder no/such/folder doesn't exist"),
        (["--html", "."], "is a folder; give the name of a file"),
        (["--candidates", "0"], "candidates must be at least 1"),
        (["--rerank-weight", "1.2"], "rerank_weight must be between 0 and 1, not 1.2"),
        (["--truncate-dim", "999"], "--truncate-dim must be between 1 and 32"),
        (["--kind", "clustering"], "which column"),
        (["--kind", "retrieval"], "a folder with corpus, queries and qrels is needed"),
        (["--score-range", "0", "1"], "score 4.5 is not within 0 to 1"),
    ],
)
def test_refused(more: list[str], said: str, tiny_bert: Path, sts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(tiny_bert), "--data", str(sts), *more]) == 2
    assert said in capsys.readouterr().err


def test_constant_scores_are_said(tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "constant.csv"
    path.write_text("sentence1,sentence2,score\na,b,1\nc,d,1\n")
    assert main(["evaluate", str(tiny_bert), "--data", str(path), "--json", str(tmp_path / "out.json")]) == 0
    out = capsys.readouterr().out
    assert "undefined" in out.splitlines()[1]
    assert "a correlation needs two rows or more" in out
    assert json.loads((tmp_path / "out.json").read_text())[0]["metrics"]["spearman_cosine"] is None
