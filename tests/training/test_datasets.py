"""Datasets made ready, and the order in which their batches are drawn: the same from any place."""

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang.bi_encoder import BiEncoder
from munjang.data.sampling import SamplerInput
from munjang.errors import InputError
from munjang.objectives import make
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset, PreparedDataset, prepare, read
from munjang.training.draws import draws, num_draws
from munjang.training.loop import Loop
from munjang.training.train import train
from munjang.training.trainee import Trainee
from munjang.types import Ints
from tests.training.made import examples, sentences
from tests.training.runs import pairs, quiet, write_tsv


def prepared_of(folder: Path, config: TrainConfig, *datasets: Dataset) -> list[PreparedDataset]:
    trainee = Trainee(BiEncoder.load(folder, "cpu"), torch.device("cpu"), config)
    return [prepare(dataset, trainee, config, None) for dataset in datasets]


@pytest.fixture
def two() -> list[Dataset]:
    """4 batches of 3, and 2 batches of 3."""
    return [Dataset(data=examples(12), objective="classification"), Dataset(data=pairs(5), objective="in_batch")]


def named(drawn: Any) -> list[tuple[int, int, int, list[int]]]:
    return [(draw.epoch, draw.index, draw.dataset, draw.rows.tolist()) for draw in drawn]


@pytest.mark.parametrize("mixing", ["proportional", "round_robin", "temperature"])
def test_draws_are_the_same_from_any_place(tiny_bert: Path, two: list[Dataset], mixing: Any) -> None:
    config = quiet(batch_size=3, mixing=mixing)
    prepared = prepared_of(tiny_bert, config, *two)
    whole = named(islice(draws(prepared, config), 25))
    for at in (0, 1, 5, 11, 17):
        epoch, index = whole[at][:2]
        assert named(islice(draws(prepared, config, epoch, index), 25 - at)) == whole[at:]
    # behind the last batch of an epoch, as a checkpoint says it
    per_epoch = num_draws(prepared, config)
    assert named(islice(draws(prepared, config, 0, per_epoch), 5)) == whole[per_epoch : per_epoch + 5]
    assert whole[per_epoch][:2] == (1, 0)


def test_an_epoch_has_every_row_once(tiny_bert: Path, two: list[Dataset]) -> None:
    config = quiet(batch_size=3)
    prepared = prepared_of(tiny_bert, config, *two)
    assert num_draws(prepared, config) == 6
    epochs = [list(islice(draws(prepared, config, epoch), 6)) for epoch in (0, 1)]
    for drawn in epochs:
        for dataset, rows in ((0, 12), (1, 5)):
            found = [row for draw in drawn if draw.dataset == dataset for row in draw.rows.tolist()]
            assert sorted(found) == list(range(rows))
    assert named(epochs[0]) != [(0, *rest) for _, *rest in named(epochs[1])]  # in another order


def test_the_smaller_one_starts_again_in_another_order(tiny_bert: Path, two: list[Dataset]) -> None:
    config = quiet(batch_size=3, mixing="round_robin")
    prepared = prepared_of(tiny_bert, config, *two)
    drawn = list(islice(draws(prepared, config), 8))
    assert [draw.dataset for draw in drawn] == [0, 1] * 4
    small = [draw.rows.tolist() for draw in drawn if draw.dataset == 1]
    first, second = small[0] + small[1], small[2] + small[3]
    assert sorted(first) == sorted(second) == list(range(5))
    assert first != second


def test_the_seed_decides(tiny_bert: Path, two: list[Dataset]) -> None:
    found = []
    for seed in (1, 1, 2):
        config = quiet(batch_size=3, seed=seed)
        prepared = prepared_of(tiny_bert, config, *two)
        head = dict(prepared[0].objective.named_parameters())["head.weight"]
        found.append((named(islice(draws(prepared, config), 6)), head.sum().item()))
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]
    assert found[0][1] != found[2][1]


def test_samplers_that_suit(tiny_bert: Path) -> None:
    config = quiet()
    kinds = {"in_batch": (2, "no_duplicates"), "batch_hard_triplet": (1, "by_label"), "cosent": (2, "random")}
    for objective, (columns, sampler) in kinds.items():
        (dataset,) = prepared_of(tiny_bert, config, Dataset(data=examples(6, columns), objective=objective))
        assert dataset.sampler == sampler
    (dataset,) = prepared_of(tiny_bert, quiet(sampler="by_length"), Dataset(data=examples(6), objective="cosent"))
    assert dataset.sampler == "by_length"
    given = Dataset(data=examples(6), objective="cosent", sampler="random", batch_size=2)
    (dataset,) = prepared_of(tiny_bert, quiet(sampler="by_length"), given)
    assert (dataset.sampler, dataset.batch_size) == ("random", 2)


def test_by_length_goes_by_tokens(tiny_bert: Path) -> None:
    """Batches of two of texts with 1 to 8 words: neighbours share one."""
    rows = examples(8)
    texts = [" ".join(["hello"] * count) for count in (5, 1, 8, 3, 2, 7, 4, 6)]
    config = quiet(sampler="by_length", batch_size=2)
    (dataset,) = prepared_of(tiny_bert, config, Dataset(data=type(rows)("x", (texts,)), objective="simcse"))
    found = {frozenset(len(texts[row].split()) for row in batch.tolist()) for batch in dataset.epoch(1, 0)}
    assert found == {frozenset(pair) for pair in ((1, 2), (3, 4), (5, 6), (7, 8))}


def test_what_a_file_is_read_for(tmp_path: Path) -> None:
    """The columns and the target are those of the objective; several files are one."""
    header = "anchor positive negative score label"
    rows = list(zip(*(sentences(4, seed) for seed in (1, 2, 3)), [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], strict=True))
    files = [str(write_tsv(tmp_path / f"{part}.tsv", header, rows[2 * part : 2 * part + 2])) for part in (0, 1)]
    for objective, columns, target in (
        ("triplet", 3, None),
        ("in_batch", 3, None),
        ("regression", 2, "scores"),
        ("classification", 2, "labels"),
    ):
        found = read(Dataset(data=files, objective=objective), ())
        assert len(found) == 4
        assert len(found.texts) == columns
        assert (found.labels is not None, found.scores is not None) == (target == "labels", target == "scores")


def test_rows_of_evaluation_files_are_dropped(tmp_path: Path) -> None:
    rows = pairs(6)
    held = write_tsv(tmp_path / "dev.tsv", "sentence1 sentence2", [(f" {rows.texts[1][2].upper()} ", "other")])
    kept = read(Dataset(data=rows, objective="in_batch"), (str(held),))
    assert kept.texts[0] == [text for row, text in enumerate(rows.texts[0]) if row != 2]
    assert "1 of 6 rows dropped" in kept.notes[-1]
    assert np.array_equal(read(Dataset(data=rows, objective="in_batch"), ()).texts, rows.texts)


def test_a_ready_objective_vectors_and_a_sampler_of_ones_own(tiny_bert: Path) -> None:
    """The same loss as by name, of the rows that the sampler gives."""
    rows, model = examples(6), BiEncoder.load(tiny_bert, "cpu")
    teacher = np.random.default_rng(0).normal(size=(6, 2, model.width)).astype(np.float32)

    def halves(source: SamplerInput) -> list[Ints]:
        return [np.arange(3) + source.epoch, np.arange(3, 6) - source.epoch]

    facts = {"width": model.width, "teacher_width": model.width}
    ready = make("embedding_mse", facts, target="own")
    losses: list[float] = []

    def watch(loop: Loop) -> None:
        loop.on_update = lambda: losses.extend(loop.take_losses())

    dataset = Dataset(data=rows, objective=ready, teacher=teacher, sampler=halves)
    config = quiet(epochs=2, dropout=0.0, learning_rate=0.0, log_every=100)
    train(model, [dataset], config=config, watch=watch)
    vectors = np.stack([model.encode(column) for column in rows.texts], axis=1)
    wanted = [((vectors - teacher)[at] ** 2).mean() for at in ([0, 1, 2], [3, 4, 5], [1, 2, 3], [2, 3, 4])]
    assert losses == pytest.approx(wanted, rel=1e-5)
    with pytest.raises(InputError, match="options are for an objective by its name; this EmbeddingMSE has its own"):
        train(model, [replace(dataset, options={"target": "first"})], config=config)
