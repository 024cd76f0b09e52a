"""Micro-batches: every sequence once, whole examples where each has a loss, and the way back to their order."""

from pathlib import Path

import numpy as np
import pytest
import torch

from munjang.bi_encoder import BiEncoder
from munjang.training.batches import Batch
from munjang.training.datasets import Dataset, prepare
from munjang.training.micro_batches import split
from munjang.training.trainee import Trainee
from tests.training.made import examples
from tests.training.runs import quiet

CPU = torch.device("cpu")


def batch_of(folder: Path, objective: str, columns: int, rows: int = 11) -> Batch:
    config = quiet()
    trainee = Trainee(BiEncoder.load(folder, "cpu"), CPU, config)
    dataset = prepare(Dataset(data=examples(rows, columns), objective=objective), trainee, config, None)
    return dataset.batches(np.arange(rows), 0, 1, np.random.default_rng(0))


def sequences(batch: Batch) -> list[list[int]]:
    return [part.tolist() for part in np.split(batch.ids, batch.starts[1:-1])]


@pytest.mark.parametrize("batch_tokens", [1, 30, 60, 100_000])
def test_any_sequences(tiny_bert: Path, batch_tokens: int) -> None:
    batch = batch_of(tiny_bert, "in_batch", 3)
    cut = split(batch, False, batch_tokens, CPU)
    seen = []
    for micro_batch in cut.micro_batches:
        parts = [part.tolist() for part in torch.split(micro_batch.packed.ids_T, micro_batch.packed.lengths.tolist())]
        assert sum(map(len, parts)) <= batch_tokens or len(parts) == 1
        assert micro_batch.known is None
        seen += parts
    assert len(seen) == 33
    assert [seen[place] for place in cut.order_of.tolist()] == sequences(batch)
    assert cut.known is not None
    assert cut.known["texts"].shape == (11, 3)
    assert (len(cut.micro_batches) == 1) == (batch_tokens == 100_000)


@pytest.mark.parametrize("batch_tokens", [1, 50, 100_000])
def test_whole_examples(tiny_bert: Path, batch_tokens: int) -> None:
    """In each micro-batch, the columns of its examples and their labels stay together."""
    batch = batch_of(tiny_bert, "classification", 2)
    own, labels = sequences(batch), examples(11).labels
    assert labels is not None
    by_text = {tuple(own[row]): row for row in range(11)}
    seen = []
    cut = split(batch, True, batch_tokens, CPU)
    for micro_batch in cut.micro_batches:
        packed = [part.tolist() for part in torch.split(micro_batch.packed.ids_T, micro_batch.packed.lengths.tolist())]
        assert micro_batch.order_of is not None
        assert micro_batch.known is not None
        ordered = [packed[place] for place in micro_batch.order_of.tolist()]
        rows = [by_text[tuple(text)] for text in ordered[: micro_batch.num_examples]]
        assert ordered[micro_batch.num_examples :] == [own[11 + row] for row in rows]
        assert micro_batch.known["labels"].tolist() == labels[rows].tolist()
        assert sum(map(len, packed)) <= batch_tokens or micro_batch.num_examples == 1
        seen += rows
    assert sorted(seen) == list(range(11))
    assert cut.known is None


def test_a_process_without_a_row(tiny_bert: Path) -> None:
    """Two rows among three processes: the last one computes nothing, and knows what the others have."""
    config = quiet()
    trainee = Trainee(BiEncoder.load(tiny_bert, "cpu"), CPU, config)
    for objective, is_separable in (("in_batch", False), ("classification", True)):
        dataset = prepare(Dataset(data=examples(2), objective=objective), trainee, config, None)
        batch = dataset.batches(np.arange(2), 2, 3, np.random.default_rng(0))
        cut = split(batch, is_separable, 100, CPU)
        assert cut.micro_batches == ()
        assert batch.sizes == (1, 1, 0)
        assert len(cut.order_of) == 0
        if not is_separable:
            assert cut.known is not None
            assert len(cut.known["texts"]) == 2
