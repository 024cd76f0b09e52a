"""Rows to token sequences: the same texts as one by one, and the same batch for any number of processes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.objectives.base import IGNORED
from munjang.training.batches import Batch, Batches
from munjang.training.datasets import Dataset, prepare
from munjang.training.trainee import Trainee
from tests.training.made import examples, sentences
from tests.training.runs import quiet

ROWS = np.array([7, 2, 9, 0, 4])


def batches_of(model: Any, objective: str, rows: Examples, **dataset: Any) -> Batches:
    config = quiet()
    trainee = Trainee(model, torch.device("cpu"), config)
    return prepare(Dataset(data=rows, objective=objective, **dataset), trainee, config, None).batches


def drawn(made: Batches, rank: int = 0, world_size: int = 1, rows: Any = ROWS) -> Batch:
    return made(rows, rank, world_size, np.random.default_rng(1))


def texts_of(batch: Batch) -> list[list[int]]:
    return [part.tolist() for part in np.split(batch.ids, batch.starts[1:-1])]


@pytest.fixture
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


@pytest.fixture
def cross(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu")


def test_columns_one_after_the_other(model: BiEncoder) -> None:
    rows = examples(10, 3)
    batch = drawn(batches_of(model, "in_batch", rows))
    wanted = [column[row] for column in rows.texts for row in ROWS]
    tokens = model.tokenizer(wanted)
    assert texts_of(batch) == [part.tolist() for part in np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])]
    assert (batch.num_sequences, batch.num_own, batch.sizes) == (3, 5, (5,))


def test_passes_go_through_twice(model: BiEncoder) -> None:
    batch = drawn(batches_of(model, "simcse", examples(10, 1)))
    found = texts_of(batch)
    assert batch.num_sequences == 2
    assert found[:5] == found[5:]


def test_values_of_the_rows(model: BiEncoder) -> None:
    rows = examples(10)
    assert rows.labels is not None
    assert rows.scores is not None
    assert drawn(batches_of(model, "classification", rows)).values["labels"].tolist() == rows.labels[ROWS].tolist()
    scores = drawn(batches_of(model, "regression", rows)).values["scores"]
    assert np.array_equal(scores, rows.scores[ROWS].astype(np.float32))
    same = Examples("same", (["a", "b", "c"], ["b", "a", "b"]))
    numbers = drawn(batches_of(model, "in_batch", same), rows=np.arange(3)).values["texts"]
    assert numbers.tolist() == [[0, 1], [1, 0], [2, 1]]  # an anchor may be another row's positive


@pytest.mark.parametrize("objective", ["in_batch", "classification", "masked", "denoising"])
@pytest.mark.parametrize("world_size", [2, 3, 7])
def test_processes_share_one_batch(model: BiEncoder, objective: str, world_size: int) -> None:
    """Their parts put together are the batch of one process, with the same words masked or deleted."""
    rows = examples(10, 1 if objective in ("masked", "denoising") else 2)
    made = batches_of(model, objective, rows)
    whole, parts = drawn(made), [drawn(made, rank, world_size) for rank in range(world_size)]
    count = whole.num_sequences
    own = [texts_of(part) if part.num_own else [] for part in parts]
    columns = [
        text
        for column in range(count)
        for part, texts in zip(parts, own, strict=True)
        for text in texts[column * part.num_own : (column + 1) * part.num_own]
    ]
    assert columns == texts_of(whole)
    assert {part.sizes for part in parts} == {tuple(part.num_own for part in parts)}
    for name, value in whole.values.items():
        if objective == "classification":  # a loss of one example at a time: each has what it needs
            assert np.array_equal(np.concatenate([part.values[name] for part in parts]), value)
        else:
            assert all(np.array_equal(part.values[name], value) for part in parts)
    if whole.targets is not None:
        assert np.concatenate([part.targets for part in parts if part.targets is not None]).tolist() == list(
            whole.targets
        )


def test_masking_spares_special_tokens(model: BiEncoder) -> None:
    made = batches_of(model, "masked", examples(200, 1))
    batch = drawn(made, rows=np.arange(200))
    assert batch.targets is not None
    ends = np.concatenate([batch.starts[:-1], batch.starts[1:] - 1])
    assert (batch.targets[ends] == IGNORED).all()
    assert not np.isin(batch.ids[ends], [made.mask_id]).any()
    share = (batch.targets != IGNORED).sum() / (len(batch.ids) - len(ends))
    assert share == pytest.approx(0.15, abs=0.04)


def test_pairs_of_a_cross_encoder(cross: CrossEncoder) -> None:
    """The first text with each of the others, as the tokenizer joins them by itself."""
    rows = replace(examples(10, 3), scores=np.random.default_rng(0).random((10, 2)))
    batch = drawn(batches_of(cross, "listnet", rows))
    assert batch.num_sequences == 2
    encode = cross.tokenizer.rust.encode
    wanted = [encode(rows.texts[0][row], rows.texts[other][row]) for other in (1, 2) for row in ROWS]
    assert texts_of(batch) == [each.ids for each in wanted]
    assert batch.types is not None
    assert batch.types.tolist() == [number for each in wanted for number in each.type_ids]


def test_sampled_documents_are_others(cross: CrossEncoder) -> None:
    """Never the row's own text, though it stands in other rows too; and the same ones in every process."""
    rows = Examples("twice", (sentences(6, 1), ["one", "one", "two", "two", "three", "one"]))
    made = batches_of(cross, "cross_in_batch", rows)
    batch = drawn(made, rows=np.arange(6))
    found = texts_of(batch)
    own, sampled = found[:6], [found[start : start + 6] for start in range(6, len(found), 6)]
    assert len(sampled) == made.objective.num_sampled
    for strangers in sampled:
        assert all(text != other for text, other in zip(own, strangers, strict=True))
    halves = [texts_of(drawn(made, rank, 2, np.arange(6))) for rank in (0, 1)]
    again = [halves[rank][start + at] for start in range(0, len(halves[0]), 3) for rank in (0, 1) for at in range(3)]
    assert again == found


def test_long_texts_are_cut(model: BiEncoder) -> None:
    config = quiet(max_length=8)
    trainee = Trainee(model, torch.device("cpu"), config)
    rows = Examples("long", (["hello " * 50, "world"], ["a", "b " * 50]))
    made = prepare(Dataset(data=rows, objective="in_batch"), trainee, config, None).batches
    batch = drawn(made, rows=np.arange(2))
    assert batch.lengths[[0, 3]].tolist() == [8, 8]
    assert batch.lengths.max() == 8
    assert model.max_length == 100


def test_no_mask_token(make: Callable[..., Path], model: BiEncoder) -> None:
    made = batches_of(model, "masked", examples(3, 1))
    tokenizer = model.tokenizer
    assert tokenizer.rust.id_to_token(made.mask_id) == "[MASK]"
    assert batches_of(BiEncoder.load(make("roberta"), "cpu"), "masked", examples(3, 1)).mask_id is not None


def test_prompts_have_to_be_as_many_as_columns(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="2 text columns, but 3 prompts"):
        batches_of(model, "in_batch", examples(4), prompts=("a", "b", "c"))


def test_labels_of_any_whole_kind(model: BiEncoder) -> None:
    for kind in (np.int32, np.uint8, np.bool_):
        rows = Examples("x", (["a", "b"], ["c", "d"]), labels=np.array([0, 1], kind))
        labels = drawn(batches_of(model, "classification", rows), rows=np.arange(2)).values["labels"]
        assert (labels.dtype, labels.tolist()) == (np.int64, [0, 1])
