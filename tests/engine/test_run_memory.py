"""The executor where memory runs out: batches are halved, and what holds is remembered."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from munjang import BiEncoder
from munjang.engine.run import Executor
from munjang.errors import MunjangError
from munjang.text.packing import Packed
from tests.engine.networks import CPU, batch_of, first_ids, mean_of_ids, submit
from tests.engine.test_run import TEXTS


class Small:
    """A network on a device that holds only so many tokens."""

    def __init__(self, holds: int) -> None:
        self.holds, self.batches = holds, list[int]()

    def __call__(self, batch: Packed) -> Tensor:
        self.batches.append(batch.num_tokens)
        if batch.num_tokens > self.holds:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return first_ids(batch)


def test_out_of_memory_halves_and_remembers() -> None:
    executor, network = Executor(mean_of_ids(), CPU), Small(holds=20)
    batch = batch_of([9, 9, 9, 9, 9, 9, 9, 9])
    found = submit(executor, batch, network).result().wait()
    assert torch.equal(found, first_ids(batch))
    assert network.batches == [72, 36, 18, 18, 36, 18, 18]
    assert executor.limit == 18
    assert executor.budget(1000).tokens == 18
    assert executor.budget(1000, asked=500).tokens == 18
    submit(executor, batch_of([30, 30]), Small(holds=40)).result()
    assert executor.limit == 18  # a larger batch that fails says nothing new


def test_one_text_too_large() -> None:
    executor, network = Executor(mean_of_ids(), CPU), Small(holds=20)
    with pytest.raises(MunjangError, match="One text of 30 tokens does not fit into the memory of cpu; lower"):
        submit(executor, batch_of([30, 5]), network).result()
    assert torch.equal(submit(executor, batch_of([5]), network).result().wait(), torch.tensor([[0.0]]))


def test_out_of_memory_in_a_whole_encode(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = BiEncoder.load(tiny_bert)
    expected = model.encode(TEXTS)
    forward, sizes = model.network.encoder.forward, []

    def small(batch: Packed) -> Any:
        sizes.append(batch.num_tokens)
        if batch.num_tokens > 150:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return forward(batch)

    monkeypatch.setattr(model.network.encoder, "forward", small)
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=2e-6)
    assert max(sizes) > 150
    limit = model._engine.executor.limit
    assert limit is not None
    assert limit <= 150
    sizes.clear()
    np.testing.assert_allclose(model.encode(TEXTS, batch_tokens=5000), expected, atol=2e-6)
    assert max(sizes) <= 150  # the second call knows
