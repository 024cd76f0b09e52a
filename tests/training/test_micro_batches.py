"""A batch in chunks: every sequence once, whole examples where each has a loss, and the way back to their order."""

from pathlib import Path

import numpy as np
import pytest
import torch

from munjang.bi_encoder import BiEncoder
from munjang.training.batches import Batch
from munjang.training.chunks import cut
from munjang.training.tasks import Dataset, prepare
from munjang.training.trainee import Trainee
from tests.training.made import examples
from tests.training.runs import quiet

CPU = torch.device("cpu")


def batch_of(folder: Path, objective: str, columns: int, rows: int = 11) -> Batch:
    config = quiet()
    trainee = Trainee(BiEncoder.load(folder, "cpu"), CPU, config)
    task = prepare(Dataset(data=examples(rows, columns), objective=objective), trainee, config, None)
    return task.batches(np.arange(rows), 0, 1, np.random.default_rng(0))


def sequences(batch: Batch) -> list[list[int]]:
    return [part.tolist() for part in np.split(batch.ids, batch.starts[1:-1])]


@pytest.mark.parametrize("budget", [1, 30, 60, 100_000])
def test_any_sequences(tiny_bert: Path, budget: int) -> None:
    batch = batch_of(tiny_bert, "in_batch", 3)
    work = cut(batch, False, budget, CPU)
    seen = []
    for chunk in work.chunks:
        parts = [part.tolist() for part in torch.split(chunk.packed.ids_T, chunk.packed.lengths.tolist())]
        assert sum(map(len, parts)) <= budget or len(parts) == 1
        assert chunk.known is None
        seen += parts
    assert len(seen) == 33
    assert [seen[place] for place in work.order_of.tolist()] == sequences(batch)
    assert work.known is not None
    assert work.known["texts"].shape == (11, 3)
    assert (len(work.chunks) == 1) == (budget == 100_000)


@pytest.mark.parametrize("budget", [1, 50, 100_000])
def test_whole_examples(tiny_bert: Path, budget: int) -> None:
    """Chunk by chunk, the columns of its examples and their labels stay together."""
    batch = batch_of(tiny_bert, "classification", 2)
    own, labels = sequences(batch), examples(11).labels
    assert labels is not None
    by_text = {tuple(own[row]): row for row in range(11)}
    seen = []
    work = cut(batch, True, budget, CPU)
    for chunk in work.chunks:
        packed = [part.tolist() for part in torch.split(chunk.packed.ids_T, chunk.packed.lengths.tolist())]
        assert chunk.order_of is not None
        assert chunk.known is not None
        ordered = [packed[place] for place in chunk.order_of.tolist()]
        rows = [by_text[tuple(text)] for text in ordered[: chunk.num_examples]]
        assert ordered[chunk.num_examples :] == [own[11 + row] for row in rows]
        assert chunk.known["labels"].tolist() == labels[rows].tolist()
        assert sum(map(len, packed)) <= budget or chunk.num_examples == 1
        seen += rows
    assert sorted(seen) == list(range(11))
    assert work.known is None


def test_a_process_without_a_row(tiny_bert: Path) -> None:
    """Two rows among three processes: the last one computes nothing, and knows what the others have."""
    config = quiet()
    trainee = Trainee(BiEncoder.load(tiny_bert, "cpu"), CPU, config)
    for objective, is_separable in (("in_batch", False), ("classification", True)):
        task = prepare(Dataset(data=examples(2), objective=objective), trainee, config, None)
        batch = task.batches(np.arange(2), 2, 3, np.random.default_rng(0))
        work = cut(batch, is_separable, 100, CPU)
        assert work.chunks == ()
        assert batch.sizes == (1, 1, 0)
        assert len(work.order_of) == 0
        if not is_separable:
            assert work.known is not None
            assert len(work.known["texts"]) == 2
