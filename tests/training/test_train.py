"""Whole runs on tiny models: every shape of data, what comes out of them, and that something is learned."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import CrossEncoder as TheirCrossEncoder
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder, CrossEncoder, Dataset, train
from munjang.data.examples import Examples
from munjang.errors import InputError, UnsupportedModel
from tests.checkpoint.test_static import make_static
from tests.training.made import examples, sentences
from tests.training.runs import TEXTS, alike, changed, close, found_share, losses, pairs, quiet, weights, write_tsv

NLI = ("entailment", "neutral", "contradiction")


@pytest.fixture
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


def test_classification_from_a_file_with_labels_by_name(model: BiEncoder, tmp_path: Path) -> None:
    data = write_tsv(
        tmp_path / "nli.tsv",
        "premise hypothesis label",
        ((a, b, NLI[row % 3]) for row, (a, b) in enumerate(zip(sentences(20, 1), sentences(20, 2), strict=True))),
    )
    before, output = weights(model), tmp_path / "model"
    config = quiet(output=str(output), batch_size=5, epochs=2, learning_rate=1e-3, dropout=0.0, warmup=0)
    assert train(model, data, "classification", config) is model
    found = losses(output)
    assert len(found) == 8
    assert found[0] == pytest.approx(np.log(3), abs=0.5)  # three classes, a head that knows nothing
    assert changed(before, weights(model)) == before.keys()


def test_the_object_equals_the_folder_and_sentence_transformers(model: BiEncoder, tmp_path: Path) -> None:
    output = tmp_path / "model"
    train(model, examples(12), "regression", quiet(output=str(output), learning_rate=1e-3, max_length=12))
    again = BiEncoder.load(output, "cpu")
    assert again.max_length == model.max_length == 100  # 12 was the limit of training only
    vectors = model.encode(TEXTS)
    assert close(again.encode(TEXTS), vectors)
    assert again.fingerprint == model.fingerprint
    theirs = SentenceTransformer(str(output), device="cpu").encode(TEXTS)
    assert np.abs(theirs - vectors).max() < 1e-5
    assert (output / "README.md").is_file()
    assert (tmp_path / "model.training" / "report.html").is_file()


def test_regression_with_a_score_range(tiny_bert: Path, tmp_path: Path) -> None:
    """Scores of 1 to 5 are learned as those from 0 to 1 are."""
    scores = np.array([0, 0.25, 0.5, 0.75, 1.0, 0.5])
    rows = Examples("scaled", (TEXTS[:6], TEXTS[6:]), scores=scores)
    data = write_tsv(
        tmp_path / "s.tsv", "sentence1 sentence2 score", zip(TEXTS[:6], TEXTS[6:], 1 + 4 * scores, strict=True)
    )
    found = []
    for source, reading in ((rows, {}), (data, {"score_range": (1, 5)})):
        learned = BiEncoder.load(tiny_bert, "cpu")
        train(learned, source, "regression", quiet(max_steps=2, learning_rate=1e-3), reading=reading)
        found.append(learned.encode(TEXTS))
    assert close(*found)


def test_in_batch_learns_its_pairs(model: BiEncoder, tmp_path: Path) -> None:
    rows, output = pairs(40), tmp_path / "model"
    before = found_share(model, rows)
    config = quiet(output=str(output), epochs=30, batch_size=20, learning_rate=3e-3, dropout=0.0)
    train(model, rows, "in_batch", config)
    found = losses(output)
    assert before < 0.3
    assert found_share(model, rows) > 0.9
    assert np.mean(found[-4:]) < 0.2 * found[0]


def test_hard_negatives_are_candidates_too(tiny_bert: Path, tmp_path: Path) -> None:
    """The loss before anything is learned, by hand: the columns behind the first are one list of candidates."""
    rows = pairs(6, 4)
    train(
        BiEncoder.load(tiny_bert, "cpu"),
        rows,
        "in_batch",
        quiet(output=str(tmp_path / "model"), max_steps=1, dropout=0.0),
    )
    first, *others = (BiEncoder.load(tiny_bert, "cpu").encode(column, normalize=True) for column in rows.texts)
    scores = first @ np.concatenate(others).T / 0.05
    wanted = np.mean([np.log(np.exp(row - row[at]).sum()) for at, row in enumerate(scores)])
    assert losses(tmp_path / "model") == pytest.approx([wanted], rel=1e-4)


def test_frozen_layers_stay(model: BiEncoder) -> None:
    encoder = model.network.encoder
    encoder.own.embeddings.requires_grad_(False)
    encoder.own.layer[0].requires_grad_(False)
    before = {name: each.detach().clone() for name, each in model.network.named_parameters()}
    train(model, pairs(8), "in_batch", quiet(max_steps=2, learning_rate=1e-2))
    after = dict(model.network.named_parameters())
    stayed = {name for name, each in before.items() if torch.equal(each, after[name])}
    assert stayed == {name for name, each in after.items() if not each.requires_grad}
    assert 0 < len(stayed) < len(after)


def test_triplets_from_a_file(model: BiEncoder, tmp_path: Path) -> None:
    data = write_tsv(tmp_path / "t.tsv", "anchor positive negative", zip(*pairs(8, 3).texts, strict=True))
    output = tmp_path / "model"
    config = quiet(output=str(output), epochs=20, learning_rate=1e-3, dropout=0.0, batch_size=8)
    train(model, data, "triplet", config, {"margin": 0.5})
    assert losses(output)[-1] < 0.5 * losses(output)[0]


def test_simcse_from_a_file_of_texts(model: BiEncoder, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    before = weights(model)
    train(model, tmp_path / "texts.txt", "simcse", quiet(max_steps=2, dropout=0.2, learning_rate=1e-3))
    assert changed(before, weights(model))


@pytest.mark.parametrize(
    ("mixing", "updates"),
    [("proportional", 7), ("round_robin", 8), ("round_robin_shortest", 6), ("temperature", 7)],
)
def test_two_datasets(model: BiEncoder, tmp_path: Path, mixing: str, updates: int) -> None:
    """12 rows by 3 are 4 batches, 9 rows by 3 are 3: an epoch has all of them, or the larger one twice in turn."""
    datasets = [
        Dataset(data=examples(12), objective="classification"),
        Dataset(data=pairs(9), objective="in_batch", sampler="random"),
    ]
    output = tmp_path / "model"
    config: Any = quiet(output=str(output), batch_size=3, mixing=mixing, temperature=1.0)
    train(model, datasets, config=config)
    assert len(losses(output)) == updates


@pytest.mark.parametrize(
    ("objective", "labels"), [("cross_entropy", 3), ("cross_bce", 1), ("cross_mse", 1), ("cross_in_batch", 1)]
)
def test_a_new_cross_encoder(tiny_bert: Path, tmp_path: Path, objective: str, labels: int) -> None:
    torch.manual_seed(0)
    model = CrossEncoder.create(tiny_bert, labels, "cpu")
    rows, output = examples(13), tmp_path / "model"
    assert rows.scores is not None
    rows = replace(rows, scores=rows.scores.round())
    config = quiet(output=str(output), epochs=15, batch_size=4, learning_rate=2e-3, dropout=0.0)
    train(model, rows, objective, config)
    found = losses(output)
    assert np.mean(found[-3:]) < 0.7 * np.mean(found[:3])
    asked = list(zip(*rows.texts, strict=True))
    scores = model.predict(asked)
    assert scores.shape == ((13, 3) if labels == 3 else (13,))
    assert close(CrossEncoder.load(output, "cpu").predict(asked), scores)
    theirs = TheirCrossEncoder(str(output), device="cpu").predict(asked)
    assert np.abs(theirs - scores).max() < 1e-4


def test_cross_bce_reads_labels_where_they_are_its_target(tiny_bert: Path, tmp_path: Path) -> None:
    rows = zip(TEXTS[:6], TEXTS[6:], [0, 1, 1, 0, 1, 0], strict=True)
    data = write_tsv(tmp_path / "l.tsv", "sentence1 sentence2 label", rows)
    config = quiet(max_steps=1, output=str(tmp_path / "model"))
    train(CrossEncoder.create(tiny_bert, 1, "cpu"), data, "cross_bce", config, {"target": "labels"})
    assert losses(tmp_path / "model") == pytest.approx([np.log(2)], abs=0.1)  # a new head says one half


def test_a_bfloat16_model_is_trained_in_float32(tiny_bert: Path, tmp_path: Path) -> None:
    """From its folder, as bits were lost in memory; the folder that is written has all digits."""
    model, exact = BiEncoder.load(tiny_bert, "cpu", "bfloat16"), BiEncoder.load(tiny_bert, "cpu")
    rows, outputs = examples(8), (tmp_path / "a", tmp_path / "b")
    for each, output in zip((model, exact), outputs, strict=True):
        train(each, rows, "regression", quiet(output=str(output), learning_rate=1e-3))
    found, wanted = (load_file(output / "model.safetensors") for output in outputs)
    assert alike(found, wanted)
    assert model.dtype == torch.bfloat16
    assert close(BiEncoder.load(outputs[0], "cpu", "bfloat16").encode(TEXTS), model.encode(TEXTS))
    model = BiEncoder.load(tiny_bert, "cpu", "bfloat16")
    model._options = None  # as a model that was made in memory
    with pytest.raises(InputError, match="dtype='float32'"):
        train(model, rows, "regression", quiet(max_steps=1))


def test_bfloat16_arithmetic(model: BiEncoder) -> None:
    before = weights(model)
    train(model, examples(8), "in_batch", quiet(max_steps=2, dtype="bfloat16", learning_rate=1e-3))
    assert changed(before, weights(model)) == before.keys()
    assert all(value.dtype == torch.float32 for value in weights(model).values())


def test_rows_that_are_evaluated_on_are_not_trained_on(model: BiEncoder, tmp_path: Path) -> None:
    rows = pairs(12, 3)  # a negative each, for batches of one row
    dev = write_tsv(
        tmp_path / "dev.tsv", "sentence1 sentence2 score", [(rows.texts[0][3].upper(), "else", 1), ("a", "b", 0)]
    )
    settings = {"evaluate": (str(dev),), "batch_size": 1, "log_every": 1}
    for output, avoid, updates in ((tmp_path / "a", None, 11), (tmp_path / "b", (), 12)):
        train(copy.copy(model), rows, "in_batch", quiet(output=str(output), avoid=avoid, **settings))
        assert len(losses(output)) == updates


def test_matryoshka_vectors_are_good_when_cut(tiny_bert: Path) -> None:
    rows = pairs(24)
    shares = {}
    for dims in ((), (32, 4)):
        learned = BiEncoder.load(tiny_bert, "cpu")
        config = quiet(epochs=30, batch_size=24, learning_rate=3e-3, dropout=0.0, matryoshka=dims)
        train(learned, rows, "in_batch", config)
        learned.truncate_dim = 4
        shares[dims] = found_share(learned, rows)
    assert shares[32, 4] > shares[()] + 0.1


def test_a_matryoshka_dimension_of_no_weight_changes_nothing(tiny_bert: Path) -> None:
    rows = pairs(12)
    found = []
    for settings in ({}, {"matryoshka": (32, 4), "matryoshka_weights": (1.0, 0.0)}, {"matryoshka": (32, 4)}):
        learned = BiEncoder.load(tiny_bert, "cpu")
        train(learned, rows, "in_batch", quiet(epochs=3, batch_size=12, learning_rate=3e-3, dropout=0.0, **settings))
        found.append(learned.encode(TEXTS))
    assert np.abs(found[1] - found[0]).max() < 1e-5
    assert np.abs(found[2] - found[0]).max() > 1e-3
    with pytest.raises(InputError, match="1 weights for 2 dims"):
        train(learned, rows, "in_batch", quiet(matryoshka=(32, 4), matryoshka_weights=(1.0,)))


def test_a_model_through_transformers_is_trained(make: Callable[..., Path], tmp_path: Path) -> None:
    model, output = BiEncoder.load(make("qwen3", pooling="lasttoken"), "cpu"), tmp_path / "model"
    rows = pairs(10)
    train(model, rows, "in_batch", quiet(output=str(output), epochs=12, learning_rate=3e-3, batch_size=10))
    assert losses(output)[-1] < 0.5 * losses(output)[0]
    assert np.abs(BiEncoder.load(output, "cpu").encode(TEXTS) - model.encode(TEXTS)).max() < 1e-6
    for settings in ({"adaptive_layers": True}, {"dropout": 0.1}, {"lora_rank": 2}):
        with pytest.raises((InputError, UnsupportedModel), match="encoders that Munjang computes itself"):
            train(model, rows, "in_batch", quiet(**settings))
    with pytest.raises(InputError, match="token states"):
        train(model, pairs(4, 1), "masked", quiet())


def test_static_embeddings_are_trained(tmp_path: Path) -> None:
    make_static(tmp_path / "static")
    model, rows, output = BiEncoder.load(tmp_path / "static", "cpu"), pairs(10), tmp_path / "model"
    train(model, rows, "in_batch", quiet(output=str(output), epochs=20, learning_rate=0.05, batch_size=10))
    assert losses(output)[-1] < 0.5 * losses(output)[0]
    assert close(BiEncoder.load(output, "cpu").encode(TEXTS), model.encode(TEXTS))
    with pytest.raises(InputError, match="token states"):
        train(model, pairs(4, 1), "masked", quiet())


def test_training_again_goes_on_from_where_it_is(tiny_bert: Path, tmp_path: Path) -> None:
    """A second run of the same object begins with what the first one made of it, as one of its folder does."""
    model, rows = BiEncoder.load(tiny_bert, "cpu"), pairs(8)
    train(model, rows, "in_batch", quiet(max_steps=2, learning_rate=1e-3, output=str(tmp_path / "first")))
    train(model, rows, "in_batch", quiet(max_steps=2, learning_rate=1e-3))
    again = train(tmp_path / "first", rows, "in_batch", quiet(max_steps=2, learning_rate=1e-3))
    assert close(again.encode(TEXTS), model.encode(TEXTS))


def test_a_model_is_left_alone_by_a_run_that_fails(model: BiEncoder) -> None:
    before = weights(model)
    with pytest.raises(InputError):
        train(model, examples(4), "triplet", quiet())
    with pytest.raises(Exception, match="is nan"):
        train(model, examples(12), "in_batch", quiet(learning_rate=1e30, warmup=0, batch_size=4))
    assert not changed(before, weights(model))


def test_settings_of_the_model_are_kept(model: BiEncoder, tmp_path: Path) -> None:
    model.prompts, model.truncate_dim, model.similarity_name = {"query": "q: "}, 8, "dot"
    model.calibrate(TEXTS)
    train(model, pairs(4), "in_batch", quiet(max_steps=1, output=str(tmp_path / "model")))
    again = BiEncoder.load(tmp_path / "model", "cpu")
    assert (again.prompts["query"], again.truncate_dim, again.similarity_name) == ("q: ", 8, "dot")
    assert again.ranges is None  # they were those of other vectors


def test_prompts_are_trained_with(tiny_bert: Path) -> None:
    rows = pairs(6)
    found = []
    for data in (
        Dataset(data=rows, objective="in_batch", prompts=("query: ", "")),
        Dataset(
            data=Examples("x", ([f"query: {text}" for text in rows.texts[0]], rows.texts[1])), objective="in_batch"
        ),
    ):
        learned = train(BiEncoder.load(tiny_bert, "cpu"), data, config=quiet(max_steps=2, learning_rate=1e-3))
        found.append(learned.encode(TEXTS))
    assert close(*found)
    with pytest.raises(InputError, match="2 text columns, but 1 prompts"):
        train(BiEncoder.load(tiny_bert, "cpu"), Dataset(data=rows, objective="in_batch", prompts=("q",)))
