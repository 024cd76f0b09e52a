"""Numbers that can be worked out on paper, and the corners of single objectives."""

import math

import pytest
import torch

from munjang.errors import InputError
from munjang.objectives import make
from tests.objectives.cases import Case, supply


def vectors(*rows: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float32, requires_grad=True)


def test_regression() -> None:
    """Cosines 1 and 0 against 0.5 and 0: (0.25 + 0) / 2."""
    outputs = [vectors((2, 0), (1, 0)), vectors((3, 0), (0, 5))]
    assert make("regression", {})(outputs, {"scores": torch.tensor([0.5, 0.0])}).item() == pytest.approx(0.125)


def test_triplet() -> None:
    """Distances 3 and 4 cost nothing at margin 1, 4 and 3 cost 2."""
    outputs = [vectors((0, 0), (0, 0)), vectors((3, 0), (4, 0)), vectors((0, 4), (0, 3))]
    assert make("triplet", {})(outputs, {}).item() == 1.0


LINE = vectors((0.0,), (1.0,), (3.0,), (7.0,))  # labels 0, 0, 1, 1
ON_LINE = {"labels": torch.tensor([0, 0, 1, 1])}


def test_batch_triplets() -> None:
    """At margin 2, distances to own: 1, 1, 4, 4; to others: (3, 7), (2, 6), (3, 2), (7, 6).

    All: 0→0, 1→1 | 2→3 and 4, 3→none (4−7+2 < 0, 4−6+2 = 0): (1 + 3 + 4) / 3.
    Hard: 0 (1−3+2), 1 (1−2+2), 4 (4−2+2), 0: 5/4. Semi-hard: 0, 1, 3 (none farther: farthest, 3), 0: 4/4.
    """
    for name, expected in (("all", 8 / 3), ("hard", 5 / 4), ("semi_hard", 1.0)):
        loss = make(f"batch_{name}_triplet", {}, margin=2.0)([LINE], ON_LINE)
        assert loss.item() == pytest.approx(expected), name


def test_semi_hard_is_farther_not_as_far() -> None:
    """0 and 2 beside −2 and 5, margin 2: from 0, −2 is as far as 2, so 5 is taken. 2−5+2 < 0, 2−3+2, 7−4+2, 7−5+2."""
    line = vectors((0.0,), (2.0,), (-2.0,), (5.0,))
    assert make("batch_semi_hard_triplet", {}, margin=2.0)([line], ON_LINE).item() == pytest.approx(10 / 4)


def test_online_contrastive_takes_what_is_on_the_wrong_side_only() -> None:
    """Similar pairs at 1 and 3, others at 1 and 2: 3² (1 is no farther than 1) and both others, margin 4."""
    outputs = [vectors((0.0,), (0.0,), (0.0,), (0.0,)), vectors((1.0,), (3.0,), (1.0,), (2.0,))]
    objective = make("online_contrastive", {}, margin=4.0, distance="euclidean")
    assert objective(outputs, {"labels": torch.tensor([1, 1, 0, 0])}).item() == 9 + 9 + 4


@pytest.mark.parametrize("name", ["batch_all_triplet", "batch_hard_triplet", "batch_semi_hard_triplet"])
@pytest.mark.parametrize("labels", [[1, 1, 1, 1], [0, 1, 2, 3]])
def test_no_triplet_is_a_zero_with_a_gradient(name: str, labels: list[int]) -> None:
    loss = make(name, {})([LINE], {"labels": torch.tensor(labels)})
    assert loss.item() == 0
    assert torch.autograd.grad(loss, LINE)[0].abs().sum() == 0


def test_equal_texts_are_no_negatives() -> None:
    """Two rows with one text as their positive: each is left with its own, so nothing is to be learned."""
    outputs = [vectors((1, 0), (0, 1)), vectors((1, 1), (1, 1))]
    in_batch = make("in_batch", {})
    assert in_batch(outputs, {"texts": torch.tensor([[0, 2], [1, 2]])}).item() == 0
    assert in_batch(outputs, {"texts": torch.tensor([[0, 2], [1, 3]])}).item() == pytest.approx(math.log(2))


def test_guide_leaves_out_what_it_finds_closer() -> None:
    """The guide's cosines of row 0: 0.6 to its positive, 1 to the other: left out; row 1: 0.8 and 0: kept."""
    outputs = [vectors((1, 0), (1, 0)), vectors((1, 0), (1, 0))]
    guide = torch.tensor([[[1.0, 0.0], [0.6, 0.8]], [[0.8, -0.6], [1.0, 0.0]]])
    extras = {"texts": torch.arange(4).view(2, 2), "guide": guide}
    assert make("in_batch", {}, guide_margin=0.0)(outputs, extras).item() == pytest.approx(math.log(2) / 2)
    # −0.9: even a candidate at 1 is below 0.6 + 0.9
    assert make("in_batch", {}, guide_margin=-0.9)(outputs, extras).item() == pytest.approx(math.log(2))


def test_distillation_to_the_first_column_or_the_own() -> None:
    outputs, teacher = [vectors((0, 0)), vectors((0, 0))], torch.tensor([[[1.0, 1.0], [3.0, 3.0]]])
    facts = {"width": 2, "teacher_width": 2}
    assert make("embedding_mse", facts)(outputs, {"teacher": teacher}).item() == 1
    assert make("embedding_mse", facts, target="own")(outputs, {"teacher": teacher}).item() == 5


@pytest.mark.parametrize("name", ["margin_mse", "cross_margin_mse", "kl", "listnet", "lambda_loss"])
def test_scores_of_another_number_are_refused(name: str) -> None:
    objective = make(name, {})
    outputs = [torch.zeros(2, 1)] * (3 if objective.needs == "logits" else 4)
    with pytest.raises(InputError, match=r"Scores of shape \(2, 5\) for 3 candidates of 2 queries"):
        objective(outputs, {"scores": torch.zeros(2, 5)})


def test_one_logit() -> None:
    with pytest.raises(InputError, match="for cross-encoders with 1 logit, not 3; take cross_entropy"):
        make("cross_bce", {})([torch.zeros(2, 3)], {"scores": torch.zeros(2)})


def test_denoising_needs_the_sentence_and_no_order() -> None:
    case = Case("denoising", columns=1)
    objective = case.make()
    batch = supply(case, objective, 6)
    loss = objective(batch.outputs, batch.extras)
    rows = [batch.rows(row, row + 1) for row in (3, 1, 5, 0, 2, 4)]
    mixed = {key: torch.cat([row.extras[key] for row in rows]) for key in ("targets", "lengths")}
    vectors_of_rows = torch.cat([row.outputs[0] for row in rows])
    torch.testing.assert_close(loss, objective([vectors_of_rows], {**batch.extras, **mixed}))
    assert torch.autograd.grad(loss, batch.outputs[0])[0].abs().sum(1).gt(0).all()


@pytest.mark.parametrize("lengths", [[1, 1], [0, 1]])
def test_texts_too_short_to_write(lengths: list[int]) -> None:
    case = Case("denoising", columns=1)
    objective = case.make()
    batch = supply(case, objective, 2)
    extras = {**batch.extras, "lengths": torch.tensor(lengths), "targets": torch.ones(sum(lengths)).long()}
    loss = objective(batch.outputs, extras)
    assert (loss.item(), int(objective.size(batch.outputs, extras))) == (0, 0)
    assert torch.autograd.grad(loss, batch.outputs)[0].abs().sum() == 0


def test_nothing_masked() -> None:
    case = Case("masked", columns=1)
    objective = case.make()
    batch = supply(case, objective, 2)
    loss = objective(batch.outputs, {**batch.extras, "targets": torch.full_like(batch.extras["targets"], -100)})
    assert loss.item() == 0
    assert torch.autograd.grad(loss, batch.outputs)[0].abs().sum() == 0
