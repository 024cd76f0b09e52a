"""Refining static vectors: batches as a loop would cut them, cosines by hand, a lesson that can be learned."""

import numpy as np
import pytest
import torch

from munjang.training.static_refine import Lesson, refine


@pytest.fixture
def lesson() -> Lesson:
    random = np.random.default_rng(0)
    lengths = random.integers(1, 6, 50)
    targets = torch.nn.functional.normalize(torch.from_numpy(random.standard_normal((50, 4))).float(), dim=-1)
    return Lesson(torch.from_numpy(random.integers(0, 30, lengths.sum())), torch.from_numpy(lengths), targets)


def test_take(lesson: Lesson) -> None:
    texts = lesson.ids_T.split(lesson.lengths_N.tolist())
    rows = torch.tensor([7, 0, 49, 7])
    some = lesson.take(rows)
    assert some.ids_T.tolist() == torch.cat([texts[row] for row in rows]).tolist()
    assert torch.equal(some.targets_NK, lesson.targets_NK[rows])


def test_cosines(lesson: Lesson) -> None:
    weight = torch.randn(30, 4, generator=torch.Generator().manual_seed(1))
    means = [weight[ids].mean(0) for ids in lesson.ids_T.split(lesson.lengths_N.tolist())]
    wanted = [float(mean @ target / mean.norm()) for mean, target in zip(means, lesson.targets_NK, strict=True)]
    np.testing.assert_allclose(lesson.cosines(weight).numpy(), wanted, atol=1e-5)


def test_what_can_be_learned_is_learned(lesson: Lesson) -> None:
    """Targets that are means of hidden vectors come out nearly whole."""
    hidden = torch.randn(30, 4, generator=torch.Generator().manual_seed(2))
    means = torch.stack([hidden[ids].mean(0) for ids in lesson.ids_T.split(lesson.lengths_N.tolist())])
    known = Lesson(lesson.ids_T, lesson.lengths_N, torch.nn.functional.normalize(means, dim=-1))
    begin = torch.randn(30, 4, generator=torch.Generator().manual_seed(3)) * 0.1
    found = refine(begin, known, epochs=60, learning_rate=0.05, batch_size=10, seed=0)
    assert known.cosines(begin).mean() < 0.5
    assert known.cosines(found).mean() > 0.99
