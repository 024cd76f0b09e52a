"""A static sibling: its parts by hand, and a whole one that other libraries read as we do."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer

from munjang import BiEncoder
from munjang.errors import InputError
from munjang.training.static import Lesson, StaticConfig, distill_static, principal, refine, start
from tests.texts import mixed

WORDS = " ".join(mixed(40, longest=12)).split()
TEXTS = [" ".join(random.Random(row).sample(WORDS, 3)) + " ☃" * (row % 3) for row in range(1500)]
CONFIG = StaticConfig(dimensions=16, refine_epochs=2, learning_rate=3e-3, batch_size=32)


@pytest.fixture(scope="module")
def teacher(make: Callable[..., Path]) -> BiEncoder:
    return BiEncoder.load(make("xlm-roberta"), "cpu")


def test_frequent_pieces_weigh_less_and_texts_have_no_mean_in_common() -> None:
    pieces = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    counts = torch.tensor([8, 1, 0])
    share = np.array([9, 2, 1]) / 12
    weight = 0.25 / (0.25 + share)
    centre = (pieces.numpy() * (share * weight)[:, None]).sum(0) / (share * weight).sum()
    found = start(pieces, counts, 0.25).numpy()
    np.testing.assert_allclose(found, (pieces.numpy() - centre) * weight[:, None], atol=1e-6)
    np.testing.assert_allclose((found * share[:, None]).sum(0), 0, atol=1e-6)


def test_principal_directions() -> None:
    vectors = torch.randn(200, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 5, 2, 9, 1, 3]) + 4
    _, _, rows = np.linalg.svd((vectors - vectors.mean(0)).numpy(), full_matrices=False)
    found = principal(vectors, 3).numpy()
    np.testing.assert_allclose(np.abs((found * rows[:3].T).sum(0)), 1, atol=1e-4)


def test_refining_brings_it_nearer_to_the_teacher(teacher: BiEncoder) -> None:
    model, report = distill_static(teacher, TEXTS, CONFIG)
    again, _ = distill_static(teacher, TEXTS, CONFIG)
    assert np.array_equal(model.encode(TEXTS), again.encode(TEXTS))
    _, rough = distill_static(teacher, TEXTS, StaticConfig(dimensions=16, refine_epochs=0))
    assert rough.cosine_after == rough.cosine_before == pytest.approx(report.cosine_before, abs=1e-6)
    assert report.cosine_after > report.cosine_before + 0.1
    assert str(report).startswith(f"{len(TEXTS):,} texts of ")


def test_other_libraries_read_it(teacher: BiEncoder, tmp_path: Path) -> None:
    model, _ = distill_static(teacher, TEXTS, CONFIG)
    model.save(tmp_path / "static")
    odd = ["a fox", "서울은 수도이다", "☃ unknown ☃ pieces", ""]
    ours = BiEncoder.load(tmp_path / "static", "cpu").encode(odd)
    np.testing.assert_array_equal(ours, model.encode(odd))
    np.testing.assert_allclose(SentenceTransformer(str(tmp_path / "static"), device="cpu").encode(odd), ours, atol=1e-6)
    theirs = StaticModel.from_pretrained(tmp_path / "static", normalize=True).encode(odd)
    np.testing.assert_allclose(theirs, ours, atol=1e-6)  # it leaves unknown pieces out; ours are zero
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), [1, 1, 1, 0], atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dimensions": 33}, "between 1 and the teacher's 32, not 33"),
        ({"dimensions": 0}, "not 0"),
        ({"refine_epochs": -1}, "at least 0"),
        ({"smoothing": 0.0}, "over 0"),
    ],
)
def test_what_is_refused(teacher: BiEncoder, options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        distill_static(teacher, TEXTS, StaticConfig(**{"dimensions": 16, **options}))


def test_too_few_texts_and_a_static_teacher(teacher: BiEncoder) -> None:
    with pytest.raises(InputError, match="31 texts are too few for 16 dimensions"):
        distill_static(teacher, [*TEXTS[:31], "", ""], CONFIG)
    model, _ = distill_static(teacher, TEXTS, CONFIG)
    with pytest.raises(InputError, match="is static already"):
        distill_static(model, TEXTS, CONFIG)


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
