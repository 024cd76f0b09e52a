"""Well-known sets are found in a folder by their files' names, read, and measured as a suite."""

import json
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.errors import InputError
from munjang.evaluation import Settings, evaluate
from munjang.evaluation.catalogue import SETS, Folder
from munjang.evaluation.suites import SUITES, read_suite
from tests.data.published.files import PUBLISHED_FILES, put
from tests.texts import ENGLISH, KOREAN

TEXTS = [*ENGLISH, *KOREAN]


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tiny files in the places in which KorNLU, SentEval and the STS benchmark publish theirs."""
    pairs = list(zip(TEXTS[:8], TEXTS[8:16], strict=True))
    rows = [f"g\tf\t2012test\t{n}\t{n % 6}\t{a}\t{b}" for n, (a, b) in enumerate(pairs)]
    write(
        tmp_path / "KorNLU" / "KorSTS" / "sts-test.tsv", "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2", *rows
    )
    write(tmp_path / "stsbenchmark" / "sts-test.csv", *rows[::-1])
    for name, part in (("news", pairs[:4]), ("headlines", pairs[4:])):
        write(tmp_path / "STS" / "STS14-en-test" / f"STS.input.{name}.txt", *("\t".join(pair) for pair in part))
        write(tmp_path / "STS" / "STS14-en-test" / f"STS.gs.{name}.txt", "1", "2", "", "4")
    write(tmp_path / "MR" / "rt-polarity.pos", *TEXTS[:12])
    write(tmp_path / "MR" / "rt-polarity.neg", *TEXTS[12:24])
    for part in ("train", "test"):
        rows = [f"{n % 2}\t1\t2\t{a}\t{b}" for n, (a, b) in enumerate(pairs)]
        write(tmp_path / "MRPC" / f"msr_paraphrase_{part}.txt", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows)
    return tmp_path


def test_sets_are_found_at_any_depth_and_named_alike_are_told_apart(folder: Path) -> None:
    found = Folder(folder)
    assert [path.relative_to(folder).as_posix() for path in found.paths("korsts-test")] == [
        "KorNLU/KorSTS/sts-test.tsv"
    ]
    assert [path.relative_to(folder).as_posix() for path in found.paths("stsb-test")] == ["stsbenchmark/sts-test.csv"]
    assert found.examples("korsts-test").texts[0] == found.examples("stsb-test").texts[0][::-1]
    assert not found.has("stsb-test", "stsb-dev")


def test_parts_of_a_year_are_joined_without_what_nobody_scored(folder: Path) -> None:
    examples = Folder(folder).examples("sts14")
    assert examples.scores is not None
    assert len(examples) == 6
    assert sorted(np.round(5 * examples.scores).tolist()) == [1, 1, 2, 2, 4, 4]


def test_rows_are_drawn_from_all_of_a_file_that_is_sorted_by_class(folder: Path) -> None:
    drawn = Folder(folder).examples("mr", max_rows=12)
    assert drawn.labels is not None
    assert set(drawn.labels.tolist()) == {0, 1}
    assert Folder(folder).examples("mr", max_rows=12).texts == drawn.texts


@pytest.mark.parametrize("key", ["klue-sts-train", "klue-nli-train", "kornli-train", "snli-train", "afs-gm"])
def test_names_of_publishers_are_known(key: str, tmp_path: Path) -> None:
    titles = {
        "klue-sts-train": "KLUE-STS",
        "klue-nli-train": "KLUE-NLI",
        "kornli-train": "KorNLI",
        "snli-train": "SNLI",
    }
    published = put(tmp_path, PUBLISHED_FILES[titles.get(key, "AFS")])
    published.rename(tmp_path / published.name.replace("_dev", "_train"))
    if key == "kornli-train":
        (tmp_path / "multinli.train.ko.tsv").write_text("premise\thypo\tlabel\n비가 온다.\t젖는다.\tneutral\n", "utf-8")
    examples = Folder(tmp_path).examples(key)
    assert len(examples) == len(PUBLISHED_FILES[titles.get(key, "AFS")].texts[0]) + (key == "kornli-train")


def test_missing_sets_say_where_to_get_them(folder: Path) -> None:
    (line,) = Folder(folder).missing(["stsb-test", "klue-sts-dev"])
    assert line.startswith("KLUE-STS dev: not in ")
    assert "github.com/KLUE-benchmark/KLUE" in line
    with pytest.raises(InputError, match=r"get it from github\.com/facebookresearch/SentEval"):
        Folder(folder).examples("cr")
    with pytest.raises(InputError, match="a folder of published files is needed"):
        Folder(folder / "no")


def test_every_set_of_a_suite_is_known() -> None:
    assert {key for suite in SUITES.values() for key in suite.sets} <= set(SETS)
    assert {known.train for known in SETS.values() if known.train} <= set(SETS)


def test_suites_measure_what_evaluate_measures(folder: Path, model: BiEncoder) -> None:
    prepared, missing = read_suite("sts", Folder(folder), Settings())
    assert [name for name, _, _ in prepared] == ["STS14", "STSb test", "KorSTS test"]
    assert len(missing) == len(SUITES["sts"].sets) - 3
    (_, kind, data) = prepared[1]
    alone = evaluate(model, folder / "stsbenchmark" / "sts-test.csv")
    assert evaluate(model, data, kind=kind).metrics == alone.metrics


def test_senteval_by_folds_and_by_its_own_split(
    folder: Path, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out.json"
    command = ["evaluate", str(tiny_bert), "--suite", "senteval", "--data", str(folder), "--json", str(out)]
    assert main(command) == 0
    reports = {report["dataset"]: report for report in json.loads(out.read_text("utf-8"))}
    assert set(reports) == {"MR", "MRPC"}
    assert any("10-fold cross-validation" in note for note in reports["MR"]["notes"])
    assert any("(|u - v|, u * v)" in note for note in reports["MRPC"]["notes"])
    assert "CR: not in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--suite", "stss"], "Unknown suite 'stss'"),
        (["--suite", "senteval"], "needs --data"),
        (["--suite", "nano", "--data", "."], "loads its own data"),
        (["--suite", "sts", "--data", ".", "--kind", "sts"], "--kind is for --data alone"),
        (["--suite", "sts", "--data", ".", "--mteb-results", "x"], "--mteb-results is for a suite that mteb measures"),
        ([], "name what to measure"),
    ],
)
def test_a_suite_refuses_what_it_would_ignore(
    flags: list[str], reason: str, tiny_bert: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(tiny_bert), *flags]) == 2
    assert reason in capsys.readouterr().err


def test_folds_need_rows_and_no_other_rows_to_train_on(folder: Path, model: BiEncoder) -> None:
    rows = Folder(folder).examples("mr")
    with pytest.raises(InputError, match="folds must be between 2 and the 24 rows, not 25"):
        evaluate(model, rows, kind="classification", folds=25)
    with pytest.raises(InputError, match=r"--folds .* is for data without rows to train on"):
        evaluate(model, rows, kind="classification", folds=2, train=rows)
