"""What can't be trained is refused at once and says why; what goes wrong on the way costs no checkpoint."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from munjang import BiEncoder, CrossEncoder, Dataset, MultiVectorEncoder, train
from munjang.data.examples import Examples
from munjang.errors import CheckpointError, InputError, MunjangError
from munjang.objectives import OBJECTIVES
from munjang.training import run as runs
from munjang.training.config import TrainConfig
from munjang.training.run import Run
from tests.token_models import make_late
from tests.training.made import examples, sentences
from tests.training.runs import alike, losses, pairs, quiet, write_sts, write_tsv

A, B = sentences(6, 1), sentences(6, 2)


@pytest.fixture
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


FILES: dict[str, tuple[str, list[Any], str, dict[str, Any], str]] = {
    "no label": ("sentence1 sentence2 other", [*zip(A, B, A, strict=True)], "classification", {}, "which column is"),
    "no texts": ("left right label", [*zip(A, B, "eeennn", strict=True)], "classification", {}, "left.*right"),
    "no such column": ("sentence1 sentence2", [*zip(A, B, strict=True)], "in_batch", {"texts": ("a", "b")}, "'a'"),
    "no negative": ("anchor positive", [*zip(A, B, strict=True)], "triplet", {}, "3 wanted.*could be: anchor, pos"),
    "unknown label": (
        "premise hypothesis label",
        [(A[0], B[0], "neutral"), (A[1], B[1], "perhaps")],
        "classification",
        {"labels": ("neutral", "entailment", "contradiction")},
        "line 3.*'perhaps' is none of neutral, entailment",
    ),
    "score out of range": (
        "sentence1 sentence2 score",
        [(A[0], B[0], 3), (A[1], B[1], 5.5)],
        "regression",
        {"score_range": (0, 5)},
        "line 3.*5.5 is not within 0 to 5",
    ),
    "score that is none": (
        "sentence1 sentence2 score",
        [(A[0], B[0], "high")],
        "regression",
        {},
        "'high' is not a num",
    ),
    "empty text": ("sentence1 sentence2", [(A[0], B[0]), (A[1], "")], "in_batch", {}, "line 3.*'sentence2' is empty"),
    "blank text": ("sentence1 sentence2", [("  ", B[0])], "in_batch", {}, "'sentence1' is blank"),
    "no rows": ("sentence1 sentence2", [], "in_batch", {}, "has no rows"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(model: BiEncoder, tmp_path: Path, name: str) -> None:
    header, rows, objective, reading, told = FILES[name]
    data = write_tsv(tmp_path / "data.tsv", header, rows)
    with pytest.raises(InputError, match=f"(?s){told}"):
        train(model, data, objective, quiet(output=str(tmp_path / "model")), reading=reading)
    assert [path.name for path in tmp_path.iterdir()] == ["data.tsv"]  # and nothing is left behind


def test_a_missing_file(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="no such file"):
        train(model, "nowhere.tsv", "in_batch", quiet())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_row(make: Callable[..., Path], tmp_path: Path, objective: str) -> None:
    """Every objective learns from one row, if nothing, or says that it can't."""
    kind = OBJECTIVES[objective]
    columns = max(kind.num_texts[0], 1)
    scores = np.array([[0.9, 0.2]]) if columns == 3 else np.array([0.7])
    rows = Examples("one", tuple([text] for text in A[:columns]), labels=np.array([1]), scores=scores)
    model: Any
    if kind.needs == "logits":
        num_labels = 3 if objective == "cross_entropy" else 1
        model = CrossEncoder.load(make("bert", kind="cross", num_labels=num_labels), "cpu")
    elif kind.needs == "token_vectors":
        model = MultiVectorEncoder.load(make_late(tmp_path / "late"), "cpu")
    else:
        model = BiEncoder.load(make("bert"), "cpu")
    teacher = BiEncoder.load(make("bert"), "cpu") if "teacher" in kind.extras else None
    data = Dataset(data=rows, objective=objective, teacher=teacher)
    if objective == "cross_in_batch" or (not kind.is_separable and columns < 3):
        with pytest.raises(
            InputError, match=r"one document only|compares rows of a batch .* there is one only; give more"
        ):
            train(model, data, config=quiet(max_steps=2))
    else:
        train(model, data, config=quiet(max_steps=2))
        assert all(parameter.isfinite().all() for parameter in model.network.parameters())


def test_batches_of_one_row(model: BiEncoder) -> None:
    """Nothing to be told apart from, unless it brings a negative."""
    with pytest.raises(InputError, match="in_batch compares rows of a batch with each other, and batch_size is 1"):
        train(model, pairs(4), "in_batch", quiet(batch_size=1))
    train(model, pairs(4, 3), "in_batch", quiet(batch_size=1, max_steps=1))
    train(model, examples(4), "regression", quiet(batch_size=1, max_steps=1))


def test_a_last_batch_of_one_document_is_left_out(make: Callable[..., Path], tmp_path: Path) -> None:
    """Nine rows by four: the ninth has no other one in its batch."""
    model = CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu")
    config = quiet(output=str(tmp_path / "model"), batch_size=4, epochs=2, sampler="random")
    train(model, pairs(9), "cross_in_batch", config)
    assert len(losses(tmp_path / "model")) == 4


REFUSED: dict[str, tuple[Dataset, str]] = {
    "objective": (Dataset(data=pairs(4), objective="in_bach"), "Did you mean 'in_batch'"),
    "option": (Dataset(data=pairs(4), objective="in_batch", options={"temprature": 1}), "Did you mean 'temperature'"),
    "value": (Dataset(data=pairs(4), objective="in_batch", options={"temperature": 0}), "over 0"),
    "kind": (Dataset(data=examples(4), objective="cross_bce"), "trains a cross-encoder, this is a bi-encoder; choose"),
    "labels": (Dataset(data=pairs(4), objective="classification"), "needs labels"),
    "scores": (Dataset(data=pairs(4), objective="regression"), "no scores"),
    "columns": (Dataset(data=pairs(4), objective="triplet"), "2 text columns .*takes 3"),
    "teacher": (Dataset(data=pairs(4), objective="embedding_mse"), "needs a teacher"),
    "guide": (Dataset(data=pairs(4), objective="in_batch", options={"guide_margin": 0.1}), "needs a guide"),
    "sampler": (Dataset(data=pairs(4), objective="in_batch", sampler="by_lable"), "Did you mean 'by_label'"),
    "by label": (Dataset(data=pairs(4), objective="in_batch", sampler="by_label"), "needs labels"),
    "rows": (Dataset(data=Examples("none", ([], [])), objective="in_batch"), "none has no rows"),
    "reading": (Dataset(data="x.tsv", objective="in_batch", reading={"textss": ()}), "Did you mean 'texts'"),
    "type": (Dataset(data=pairs(4), objective="in_batch", options={"temperature": "hot"}), "don't fit"),
    "below 0": (
        Dataset(data=Examples("x", (A[:2], B[:2]), labels=np.array([-1, 1])), objective="classification"),
        "whole numbers from 0; these are int64, the lowest is -1",
    ),
    "halves": (
        Dataset(data=Examples("x", (A[:2], B[:2]), labels=np.array([0.5, 1])), objective="classification"),
        "whole numbers from 0; these are float64",
    ),
    "too many scores": (
        Dataset(data=Examples("x", (A, B), scores=np.ones((6, 1))), objective="regression"),
        "needs one score a row, not a list of 1",
    ),
    "too few scores": (
        Dataset(data=Examples("x", (A, B, A), scores=np.ones(6)), objective="kl"),
        "needs 2 scores a row, one for each candidate, not one",
    ),
    "too few margins": (
        Dataset(data=Examples("x", (A, B, A, B), scores=np.ones(6)), objective="margin_mse"),
        "needs 3 scores a row, one for each candidate, not one",
    ),
    "no folder": (Dataset(data=pairs(4), objective="embedding_mse", teacher="/nowhere"), "no folder"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_datasets(model: BiEncoder, name: str) -> None:
    dataset, told = REFUSED[name]
    with pytest.raises(MunjangError, match=told):
        train(model, dataset, config=quiet())


def test_teachers_and_guides_that_do_not_fit(model: BiEncoder, make: Callable[..., Path]) -> None:
    one, three = (str(make("bert", kind="cross", num_labels=labels)) for labels in (1, 3))
    bi = str(make("bert"))
    for dataset, told in (
        (Dataset(data=pairs(4), objective="in_batch", teacher=bi), "in_batch takes none. Choose from embedding_cosine"),
        (Dataset(data=pairs(4), objective="embedding_mse", teacher=one), "cross-encoder, which gives scores"),
        (Dataset(data=pairs(4, 3), objective="margin_mse", teacher=three), "The teacher has 3 labels"),
        (Dataset(data=pairs(4, 3), objective="margin_mse", teacher=bi), "bi-encoder, which gives vectors"),
        (Dataset(data=pairs(4), objective="in_batch", guide=bi), "option guide_margin"),
        (Dataset(data=pairs(4), objective="in_batch", guide=one, options={"guide_margin": 0.1}), "to be a bi-encoder"),
    ):
        with pytest.raises(InputError, match=told):
            train(model, dataset, config=quiet())


def test_outputs_of_a_cross_encoder(make: Callable[..., Path]) -> None:
    one, three = (CrossEncoder.load(make("bert", kind="cross", num_labels=labels), "cpu") for labels in (1, 3))
    for model, rows, objective, told in (
        (one, examples(9, labels=2), "cross_entropy", "2 labels and the model one output.*cross_bce"),
        (one, examples(9, labels=3), "cross_entropy", "3 labels and the model one output; create it"),
        (three, examples(40, labels=5), "cross_entropy", "5 labels, the model 3"),
        (three, examples(9), "cross_bce", "1 logit, not 3"),
        (one, examples(9), "in_batch", "trains a bi-encoder, this is a cross-encoder"),
    ):
        with pytest.raises(InputError, match=told):
            train(model, rows, objective, quiet())


SETTINGS = [
    *({"batch_size": 0}, {"accumulate": 0}, {"max_steps": 0}, {"batch_tokens": 0}, {"lora_rank": 0}, {"epochs": 0}),
    *(
        {"learning_rate": -1.0},
        {"learning_rate": float("inf")},
        {"epochs": float("nan")},
        {"warmup": 1.5},
        {"ema": 1.0},
    ),
    *({"clip": 0.0}, {"dropout": 1.0}, {"weight_decay": -0.1}, {"head_rate": -1.0}, {"temperature": 0.0}),
    *({"resume": True}, {"patience": 2}),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        TrainConfig(**settings)


def test_an_evaluation_that_will_fail_is_refused_before_training(model: BiEncoder, tmp_path: Path) -> None:
    output = tmp_path / "model"
    with pytest.raises(InputError, match="no such file"):
        train(model, pairs(4), "in_batch", quiet(output=str(output), evaluate=(str(tmp_path / "nothing.tsv"),)))
    strange = write_tsv(tmp_path / "strange.tsv", "left right", [("a", "b")])
    with pytest.raises(InputError, match="left"):
        train(model, pairs(4), "in_batch", quiet(output=str(output), evaluate=(str(strange),), avoid=()))
    names = "entailment", "neutral", "contradiction"
    dev = write_tsv(tmp_path / "dev.tsv", "premise hypothesis label", [("a", "b", name) for name in names])
    with pytest.raises(InputError, match="nli of a bi-encoder trains a classifier"):
        train(model, pairs(4), "in_batch", quiet(output=str(output), evaluate=(str(dev),), avoid=()))
    assert not output.with_name("model.training").exists()


def test_a_loss_that_is_no_number(model: BiEncoder, tmp_path: Path) -> None:
    """Row 9 has no score: its batch is named, nothing of it is saved, and the checkpoint before can be read."""
    rows = examples(12)
    assert rows.scores is not None
    rows.scores[9] = np.nan
    output = tmp_path / "model"
    config = quiet(output=str(output), batch_size=2, save_every=1, seed=4)
    with pytest.raises(MunjangError, match=r"loss of update (\d+) is nan \(batch of made up, rows .*\b9\b") as caught:
        train(model, rows, "regression", config)
    update = int(str(caught.value).split("update ")[1].split()[0])
    assert update > 2  # else the seed has to be another one
    assert f"the checkpoint of update {update - 1} is good" in str(caught.value)
    found = Run(output).newest()
    assert found is not None
    assert found[1]["update"] == update - 1
    assert all(value.isfinite().all() for value in found[0].values())
    assert not output.exists()


def test_a_rate_that_is_far_too_high(model: BiEncoder, tmp_path: Path) -> None:
    with pytest.raises(MunjangError, match=r"loss of update \d+ is nan .*; nothing was saved"):
        train(model, pairs(12), "in_batch", quiet(learning_rate=1e30, warmup=0, batch_size=4))
    # the loss of the only update is a number, what it makes of the weights is not: weight decay times 3e38
    config = quiet(learning_rate=3e38, weight_decay=1.0, warmup=0, max_steps=1, output=str(tmp_path / "model"))
    with pytest.raises(MunjangError, match="After update 1 some weights are not finite; nothing was saved"):
        train(model, pairs(4), "in_batch", config)
    assert Run(tmp_path / "model").newest() is None


def test_a_full_disk_costs_no_checkpoint(tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From update 3 on no file may be longer than 20 kB, as by a full disk; with room again the run goes on."""
    settings: dict[str, Any] = {"max_steps": 6, "save_every": 2, "batch_size": 4, "learning_rate": 1e-3}
    whole, output = tmp_path / "whole", tmp_path / "model"
    train(BiEncoder.load(tiny_bert, "cpu"), pairs(8), "in_batch", quiet(output=str(whole), **settings))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = runs.Run.log

    def filling(self: Run, line: Any) -> None:
        log(self, line)
        if line["step"] == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))

    monkeypatch.setattr(runs.Run, "log", filling)
    try:
        with pytest.raises(CheckpointError, match=r"step-000004 can't be written: .*that of step 2 is kept, go on"):
            train(BiEncoder.load(tiny_bert, "cpu"), pairs(8), "in_batch", quiet(output=str(output), **settings))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    monkeypatch.setattr(runs.Run, "log", log)
    folder = tmp_path / "model.training"
    assert [path.name for path in folder.glob("step-*")] == ["step-000002"]
    found = Run(output).newest()
    assert found is not None
    assert found[1]["update"] == 2
    train(BiEncoder.load(tiny_bert, "cpu"), pairs(8), "in_batch", quiet(output=str(output), resume=True, **settings))
    assert losses(output) == pytest.approx(losses(whole), rel=1e-3)
    ours, wanted = load_file(output / "model.safetensors"), load_file(whole / "model.safetensors")
    assert alike(ours, wanted)


def test_a_full_disk_while_the_best_weights_are_kept(model: BiEncoder, tmp_path: Path) -> None:
    dev = write_sts(tmp_path / "dev.tsv")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(CheckpointError, match=r"best.safetensors can't be written: .*; there is none before"):
            train(model, pairs(4), "in_batch", quiet(output=str(tmp_path / "model"), evaluate=(str(dev),)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.glob("model.training/best*"))


def test_a_folder_has_one_run_at_a_time(model: BiEncoder, tmp_path: Path) -> None:
    """tests/data/test_locks.py holds the lock from another process."""
    output = tmp_path / "model"
    with Run(output), pytest.raises(InputError, match="is being written by another process"):
        train(model, pairs(4), "in_batch", quiet(output=str(output)))
    train(model, pairs(4), "in_batch", quiet(output=str(output)))


def test_what_a_run_can_not_go_on_with(tiny_bert: Path, tmp_path: Path) -> None:
    same = pairs(8)

    def go(rows: Examples = same, objective: str = "in_batch", resume: bool = True, **more: Any) -> None:
        given = {name: more.pop(name) for name in ("options", "prompts", "guide", "sampler") if name in more}
        config = quiet(output=str(tmp_path / "model"), **{"resume": resume, "batch_size": 4, **more})
        train(tiny_bert, Dataset(data=rows, objective=objective, **given), config=config)

    with pytest.raises(InputError, match="There is no run to resume"):
        go()
    assert not (tmp_path / "model.training").exists()
    go(resume=False)
    guided = {"guide": str(tiny_bert), "options": {"guide_margin": 0.1}}
    for change, told in (
        ({"rows": pairs(9)}, r"rows was 8, is now 9"),
        ({"rows": Examples("pairs", ([*A, "x", "y"], [*B, "x", "y"]))}, "hash was"),
        ({"batch_size": 2}, "batch_size was 4, is now 2"),
        ({"learning_rate": 1e-3}, "learning_rate was 2e-05, is now 0.001"),
        ({"objective": "triplet", "rows": pairs(8, 3)}, "objective was 'in_batch', is now 'triplet'"),
        ({"sampler": "random"}, "sampler was 'no_duplicates', is now 'random'"),
        ({"options": {"temperature": 0.1}}, "options.temperature was None, is now 0.1"),
        ({"prompts": ("q: ", "")}, "prompts was"),
        (guided, "guide was None"),
        ({"epochs": 2.0}, "epochs was 1.0, is now 2.0"),
    ):
        with pytest.raises(InputError, match=told):
            go(**change)
    with pytest.raises(InputError, match="holds a run already"):
        go(resume=False)
    go(log_every=2, save_every=1)  # what changes nothing may be changed
