"""Blocks of rows: the same numbers, and nothing of all rows times all candidates is kept."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from munjang.objectives import Objective, make
from munjang.objectives.base import Extras
from munjang.objectives.blocks import mean_by_rows, sum_by_rows

SIZE, WIDTH = 1500, 8


def step(objective: Objective, outputs: Sequence[Tensor], extras: Extras) -> tuple[Tensor, list[Tensor], int]:
    """Loss, gradients, and the numbers of the largest tensor that was kept for them."""
    leaves, largest = [values.clone().requires_grad_() for values in outputs], 0

    def keep(values: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, values.numel())
        return values

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda values: values):
        loss = objective(leaves, extras)
    return loss.detach(), list(torch.autograd.grad(loss, leaves)), largest


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)), dtype=torch.float64)


@pytest.mark.parametrize("options", [{}, {"is_symmetric": True}, {"guide_margin": 0.1}])
def test_in_batch(options: dict[str, object]) -> None:
    outputs = list(normal(3, SIZE, WIDTH))
    texts = torch.randint(0, 2 * SIZE, (SIZE, 3), generator=torch.Generator().manual_seed(0))
    extras = {"texts": texts, "guide": normal(SIZE, 3, 4)}
    in_blocks = step(make("in_batch", {}, block_rows=256, **options), outputs, extras)
    at_once = step(make("in_batch", {}, block_rows=SIZE, **options), outputs, extras)
    torch.testing.assert_close(in_blocks[:2], at_once[:2], rtol=1e-10, atol=1e-12)
    assert at_once[2] >= SIZE * SIZE
    assert in_blocks[2] < SIZE * SIZE / 50


@pytest.mark.parametrize("name", ["cosent", "angle"])
def test_rankings_keep_no_matrix(name: str) -> None:
    scores = torch.arange(SIZE, dtype=torch.float64) % 7
    assert step(make(name, {}), list(normal(2, SIZE, WIDTH)), {"scores": scores})[2] <= SIZE * WIDTH


def test_batch_all_keeps_no_cube() -> None:
    size = 300  # 27 million triplets: two blocks
    labels = {"labels": torch.arange(size) % 4}
    loss, _, largest = step(make("batch_all_triplet", {}), [normal(size, WIDTH)], labels)
    assert loss > 0
    assert largest <= size * size


def test_masked_keeps_no_logits() -> None:
    tokens, words = 700, 30_000
    objective = make("masked", {"hidden_width": WIDTH, "vocab_size": words}).double()
    extras = {"targets": torch.arange(tokens), "words": normal(words, WIDTH)}
    assert step(objective, [normal(tokens, WIDTH)], extras)[2] <= words * WIDTH


def test_no_blocks_without_gradient() -> None:
    seen = []

    def costs(part: slice) -> Tensor:
        seen.append(part)
        return torch.arange(10.0)[part]

    with torch.no_grad():
        assert mean_by_rows(costs, 10, block_rows=4) == 4.5
    assert seen == [slice(0, 4), slice(4, 8), slice(8, 10)]


def test_sums_of_several_columns() -> None:
    assert sum_by_rows(lambda part: torch.ones(6, 2)[part], 6, block_rows=4).tolist() == [6.0, 6.0]
