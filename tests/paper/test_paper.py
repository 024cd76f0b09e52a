"""The paper's tables on tiny files: everything runs, resumes and shows what was measured beside the paper's figures."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.engine.padded import encode_padded
from munjang.errors import InputError
from munjang.pages.words import WORDS
from munjang.paper import run, work
from munjang.paper.config import QUICK_ROWS, PaperConfig
from munjang.paper.experiments import AFS_SETS, LANGUAGES, NUM_FOLDS, Line, Stage, tables
from munjang.paper.published import figure
from munjang.paper.report import Result, Row, Score, markdown
from munjang.paper.run import Paper, plan
from munjang.paper.sets import Sets
from tests.paper.published import put_english, put_korean
from tests.texts import ENGLISH, KOREAN

QUICK = PaperConfig(quick=True)


@pytest.fixture(scope="module")
def korean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_korean(tmp_path_factory.mktemp("korean"))


@pytest.fixture(scope="module")
def english(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_english(tmp_path_factory.mktemp("english"))


def test_the_command_makes_every_table_of_korean(
    korean: Path, tiny_bert: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["paper", str(tiny_bert), "--data", str(korean), "-o", str(tmp_path / "out"), "--quick"]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "KLUE-STS dev: not in" in shown.err
    assert "| NLI, then similarity | " in shown.out
    made = json.loads((tmp_path / "out" / "paper.json").read_text("utf-8"))
    assert [table["name"] for table in made["tables"]] == [
        *("similarity", "supervised", "transfer", "pooling", "concatenation")
    ]
    expected = {table.name: {line.name for line in table.lines} for table in tables(LANGUAGES["ko"], "regression")}
    assert {table["name"]: set(table["lines"]) for table in made["tables"]} == expected
    pooling = made["tables"][3]["lines"]
    assert pooling["nli"]["korsts-dev"]["paper"] == 80.78
    assert pooling["nli"]["korsts-dev"]["mean"] != pooling["nli_cls"]["korsts-dev"]["mean"]
    assert set(made["speed"]["sentences_per_s"]) == {"plain", "smart", "packed"}
    assert made["train_rows"]["nli"] <= QUICK_ROWS
    page = (tmp_path / "out" / "paper.html").read_text("utf-8")
    assert json.dumps("논문")[1:-1] in page
    assert "80.78" in page
    assert list((tmp_path / "out" / "models").iterdir()) == []
    assert main(command) == 0
    assert "25 trainings and measurements, 25 of them done" in capsys.readouterr().err


def test_a_killed_run_goes_on_where_it_was(
    korean: Path, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(QUICK, only=("supervised",))
    done: list[str] = []
    original = run.work

    def counted(job: work.Job, *arguments: object) -> dict[str, object]:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job.key)
        return original(job, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(run, "work", counted)
    with pytest.raises(KeyboardInterrupt):
        Paper(str(tiny_bert), korean, tmp_path, config).run(lambda _: None)
    first = {path.name: path.read_text("utf-8") for path in (tmp_path / "records").iterdir()}
    monkeypatch.setattr(run, "work", original)
    result = Paper(str(tiny_bert), korean, tmp_path, config).run(lambda _: None)
    assert len(first) == 2
    assert all((tmp_path / "records" / name).read_text("utf-8") == text for name, text in first.items())
    assert {row.line.name for row in result.tables[0].rows} == {"sts", "nli_sts", "cross_sts", "cross_nli_sts"}
    with pytest.raises(InputError, match="holds a run with batch_size 16, and this one has 8"):
        Paper(str(tiny_bert), korean, tmp_path, replace(config, batch_size=8)).run(lambda _: None)


def test_tables_and_seeds_can_be_added_to_a_run(korean: Path, tiny_bert: Path, tmp_path: Path) -> None:
    config = PaperConfig(
        seeds=(1,), max_train_rows=QUICK_ROWS, max_test_rows=QUICK_ROWS, sts_epochs=1, only=("similarity",)
    )
    messages: list[str] = []
    Paper(str(tiny_bert), korean, tmp_path, config).run(messages.append)
    before = json.loads((tmp_path / "records" / "nli-seed1.json").read_text("utf-8"))
    assert set(before["scores"]) == {"korsts-test"}
    more = replace(config, seeds=(1, 2), only=("similarity", "concatenation"))
    paper = Paper(str(tiny_bert), korean, tmp_path, more)
    paper.jobs = [job for job in paper.jobs if job.line.name in ("static", "nli")]
    similarity, concatenation = paper.run(messages.append).tables
    after = json.loads((tmp_path / "records" / "nli-seed1.json").read_text("utf-8"))
    assert after["scores"]["korsts-test"] == before["scores"]["korsts-test"]
    assert set(after["scores"]) == {"korsts-test", "korsts-dev"}
    assert "3 trainings and measurements, 1 of them done" in messages
    assert {row.line.name: len(row.scores["korsts-test"].seeds) for row in similarity.rows} == {"static": 1, "nli": 2}
    (row,) = concatenation.rows
    assert len(row.scores["korsts-dev"].seeds) == 2


def test_several_processes_train_each_model_once(korean: Path, tiny_bert: Path, tmp_path: Path) -> None:
    """The folder of a training is locked: a second one of the same model would be an error."""
    paper = Paper(str(tiny_bert), korean, tmp_path, replace(QUICK, workers=2, only=("supervised", "transfer")))
    paper.jobs = [job for job in paper.jobs if job.line.name in ("nli", "nli_sts", "static")]
    assert [job.sets for job in paper.jobs if job.line.name == "nli"] == [("nsmc",)]
    messages: list[str] = []
    supervised, transfer = paper.run(messages.append).tables
    assert sum(" of 3: " in message for message in messages) == 3
    assert [row.line.name for row in supervised.rows] == ["nli_sts"]
    assert {row.line.name for row in transfer.rows} == {"static", "nli"}
    assert all(row.scores["nsmc"].mean is not None for row in transfer.rows)
    assert not any((tmp_path / "models").iterdir())


def test_what_takes_minutes_is_a_job_of_its_own(korean: Path, tiny_bert: Path, tmp_path: Path) -> None:
    jobs = Paper(str(tiny_bert), korean, tmp_path, QUICK).jobs
    found = [job.sets for job in jobs if job.line.name == "nli"]
    assert found == [("korsts-test", "korsts-dev"), ("nsmc",)]


def test_english_has_the_tables_of_arguments_and_sections(english: Path, tiny_bert: Path, tmp_path: Path) -> None:
    config = replace(QUICK, language="en", only=("arguments", "sections"))
    paper = Paper(str(tiny_bert), english, tmp_path, config)
    paper.jobs = [job for job in paper.jobs if job.line.name in ("afs_bi_topics", "sections_triplet", "static")]
    shown = {each.table.name: each for each in paper.run(lambda _: None).tables}
    (row,) = shown["arguments"].rows
    assert row.scores["afs"].paper == 50.65
    assert len(row.scores["afs"].seeds) == 1
    assert [row.line.name for row in shown["sections"].rows] == ["static", "sections_triplet"]
    assert all(row.scores["sections-test"].mean is not None for row in shown["sections"].rows)


def test_folds_hold_out_a_tenth_of_each_topic_once(english: Path) -> None:
    sets = Sets(english, PaperConfig(language="en"))
    whole = sorted(text for key in AFS_SETS for text in sets.folder.examples(key).texts[1])
    held = [sets.test("afs", f"fold{fold}")[1] for fold in range(NUM_FOLDS)]
    assert sorted(text for examples in held for text in examples.texts[1]) == whole
    for fold, examples in enumerate(held):
        assert len(examples) + len(sets.train("afs", f"fold{fold}")) == len(whole)
    assert len(sets.test("afs", "without-afs-gc")[1]) == len(sets.folder.examples("afs-gc"))


def test_training_rows_share_no_sentence_with_what_is_measured(korean: Path) -> None:
    sets = Sets(korean, PaperConfig())
    measured = {
        text for key in ("korsts-dev", "korsts-test") for column in sets.folder.examples(key).texts for text in column
    }
    for name in ("nli", "sts"):
        rows = sets.train(name)
        assert len(rows)
        assert not measured & {text for column in rows.texts for text in column}


def test_lines_that_begin_alike_share_the_model_of_their_first_stage() -> None:
    nli, sts = Stage("nli", "classification"), Stage("sts", "regression")
    both = work.Job(Line("nli_sts", (nli, sts)), 1, "", ())
    assert both.stage_keys[0] == work.Job(Line("nli", (nli,)), 1, "", ()).stage_keys[-1]
    assert both.stage_keys[0] != work.Job(Line("nli", (nli,), "cls"), 1, "", ()).stage_keys[-1]
    inputs = {work.Job(line, 1, "", ()).stage_key(1) for line in tables(LANGUAGES["ko"], "regression")[4].lines}
    assert len(inputs) == 7


def test_every_line_and_table_has_words_and_the_figures_have_lines() -> None:
    for name, language in LANGUAGES.items():
        for table in tables(language, "regression"):
            assert f"paper_{table.name}" in WORDS, name
            assert all(line.name.startswith("concat_") or f"paper_{line.name}" in WORDS for line in table.lines)
    assert figure("supervised", "cross_nli_sts", "korsts-test") == 88.33
    assert figure("similarity", "nli", "klue-sts-dev") is None


def test_scores_of_seeds() -> None:
    assert str(Score((70.0, 72.0, 74.0))) == "72.00 ± 2.00"
    assert str(Score((70.0,))) == "70.00"
    assert str(Score(())) == "–"


def test_an_average_is_over_the_sets_of_each_seed_and_has_the_papers() -> None:
    scores = {"a": Score((50.0, 60.0), 40.0), "b": Score((70.0, 90.0), 60.0), "c": Score((1.0,), None)}
    row = Row(Line("nli"), scores)
    assert str(row.average(("a", "b"))) == "67.50 ± 10.61"
    assert row.average(("a", "b")).paper == 50
    assert row.average(("a", "c")).paper is None
    assert row.average(("a", "c")).seeds == (25.5,)


def test_a_table_without_a_measured_set_is_not_shown() -> None:
    similarity, supervised = tables(LANGUAGES["ko"], "regression")[:2]
    line = similarity.lines[0]
    record = {"line": line.name, "seed": 1, "part": "", "scores": {"korsts-test": {"spearman_cosine": 50.0}}}
    record |= {"machine": "a machine", "date": "2026-11-19", "train_rows": {}}
    empty = replace(similarity, sets=("nsmc",))
    found = Result.of("model", PaperConfig(), [similarity, empty, supervised], [record], None, ())
    assert [each.table for each in found.tables] == [similarity]


def test_seeds_without_a_record_are_named() -> None:
    shown = markdown(Result("model", PaperConfig(seeds=(1, 2, 3)), (), None, (), seeds=(1,)))
    assert "seeds 1 (not yet 2, 3), batch" in shown


def test_a_plan_names_what_is_missing_and_trains_nothing(korean: Path, tiny_bert: Path, tmp_path: Path) -> None:
    lines = plan(Paper(str(tiny_bert), korean, tmp_path / "out", PaperConfig(only=("supervised",))))
    assert lines[0].startswith("supervised: sts, nli_sts, cross_sts, cross_nli_sts; on korsts-test")
    assert lines[-1] == "12 trainings and measurements"
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="There is no table 'sts'; choose from similarity, supervised"):
        Paper(str(tiny_bert), korean, tmp_path, PaperConfig(only=("sts",)))
    with pytest.raises(InputError, match="seeds must be different numbers"):
        PaperConfig(seeds=(1, 1))


def test_a_set_of_another_shape_is_an_error_before_anything_is_trained(tiny_bert: Path, tmp_path: Path) -> None:
    folder = put_english(tmp_path / "data")
    for split in ("train", "test"):  # without the published header
        (folder / f"msr_paraphrase_{split}.txt").write_text("1\t12\t34\tone sentence\tand another\n", "utf-8")
    with pytest.raises(InputError, match=r"msr_paraphrase_test.txt: which columns hold the texts \(2 wanted\)"):
        Paper(str(tiny_bert), folder, tmp_path / "out", PaperConfig(language="en"))


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_padded_batches_give_the_vectors_of_packed_ones(tiny_bert: Path, pooling: str, is_sorted: bool) -> None:
    encoder = BiEncoder.load(tiny_bert, "cpu", "float32", pooling=pooling)
    texts = [*ENGLISH, *KOREAN, "one", ""]
    padded = encode_padded(
        encoder.network, encoder._engine.executor, encoder.tokenizer, texts, batch_size=5, is_sorted=is_sorted
    )
    np.testing.assert_allclose(padded, encoder.encode(texts), atol=2e-6)
