"""Laws of every entry of OBJECTIVES and WRAPPERS."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from munjang.data.sampling import SAMPLERS
from munjang.objectives import Objective
from munjang.objectives.base import NEEDS
from munjang.training.corruption import CORRUPTIONS
from tests.objectives.cases import ALL, Batch, Case, supply
from tests.objectives.naive import NAIVE, wrapped

EXTRAS = {"labels", "scores", "texts", "teacher", "guide", "targets", "lengths", "words"}
each_case = pytest.mark.parametrize("case", ALL, ids=str)


def naive_loss(case: Case, objective: Objective, batch: Batch) -> Tensor:
    naive, parameters = NAIVE[case.name], dict(objective.named_parameters())
    if case.wrapper is not None:
        naive = wrapped(case.wrapper, case.wrapper_options, naive)
        parameters = {name.removeprefix("objective."): each for name, each in parameters.items()}
    return naive(case.options, batch.outputs, batch.extras, parameters)


def gradients(loss: Tensor, objective: Objective, batch: Batch) -> list[Tensor]:
    leaves = [*batch.leaves(), *objective.parameters()]
    found = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found, strict=True)]


@each_case
@pytest.mark.parametrize("size", [7, 2, 1])
def test_agrees_with_naive(case: Case, size: int) -> None:
    """Values and all gradients in float64, to nine digits."""
    objective = case.make()
    batch = supply(case, objective, size)
    ours, theirs = objective(batch.outputs, batch.extras), naive_loss(case, objective, batch)
    assert (ours.shape, ours.dtype) == ((), torch.float64)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)
    for mine, other in zip(gradients(ours, objective, batch), gradients(theirs, objective, batch), strict=True):
        assert mine.isfinite().all()
        torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-9)


@each_case
def test_parts_make_the_whole(case: Case) -> None:
    """By `size`: exact where the objective says that it is separable, and it says so where it can."""
    objective = case.make()
    batch = supply(case, objective, 6)
    whole = objective(batch.outputs, batch.extras)
    parts = [batch.rows(0, 1), batch.rows(1, 4), batch.rows(4, 6)]
    sizes = [torch.as_tensor(objective.size(part.outputs, part.extras)) for part in parts]
    losses = [objective(part.outputs, part.extras) for part in parts]
    total = sum(size * loss for size, loss in zip(sizes, losses, strict=True)) / sum(sizes)
    is_sum = bool(torch.isclose(total, whole, rtol=1e-9))
    assert is_sum == objective.is_separable
    if objective.is_separable:
        assert sum(sizes) == objective.size(batch.outputs, batch.extras)


@each_case
def test_lower_precision(case: Case) -> None:
    """bf16 outputs and fp32 parameters, as in mixed precision: the loss is fp32 and near that of fp64."""
    objective = case.make()
    batch = supply(case, objective, 6)
    expected = objective(batch.outputs, batch.extras)
    objective = objective.float()
    extras = {key: values.float() if values.is_floating_point() else values for key, values in batch.extras.items()}
    outputs = [values.detach().bfloat16().requires_grad_() for values in batch.outputs]
    loss = objective(outputs, extras)
    assert loss.dtype == torch.float32
    loss.backward()
    assert all(values.grad is not None and values.grad.isfinite().all() for values in outputs)
    torch.testing.assert_close(loss.double(), expected, rtol=0.1, atol=0.1)


@each_case
def test_state_goes_round(case: Case) -> None:
    objective, other = case.make(), case.make()
    batch = supply(case, objective, 5)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1)
    other.load_state_dict(objective.state_dict())
    assert torch.equal(objective(batch.outputs, batch.extras), other(batch.outputs, batch.extras))


@each_case
def test_declarations(case: Case) -> None:
    objective = case.make()
    low, high = objective.num_texts
    assert objective.needs in NEEDS
    assert 1 <= low <= case.columns <= (high or case.columns)
    assert set(objective.extras) <= EXTRAS
    assert objective.passes >= 1
    assert objective.num_sampled >= 0
    assert objective.corruption in (None, *CORRUPTIONS)
    assert objective.sampler in SAMPLERS
    assert (objective.__doc__ or "").strip(), "the documents show its first line"
    # word embeddings take part of the gradient past the outputs
    assert objective.can_be_cached == ("words" not in objective.extras)


@each_case
def test_loss_has_a_gradient_in_every_batch(case: Case) -> None:
    """Equal texts, equal labels, no scores: nothing to learn from, but no NaN either."""
    objective = case.make()
    batch = supply(case, objective, 4)
    extras = dict(batch.extras)
    if "labels" in extras:
        extras["labels"] = torch.zeros_like(extras["labels"])
    if "scores" in extras and case.scores == "candidates":
        extras["scores"] = torch.full_like(extras["scores"], float("nan"))
    if "texts" in extras:
        extras["texts"] = torch.zeros_like(extras["texts"])
    first = batch.outputs[0]
    outputs = [values.detach()[:1].expand_as(first).clone().requires_grad_() for values in batch.outputs]
    same = replace(batch, outputs=outputs, extras=extras)
    loss = objective(same.outputs, same.extras)
    assert loss.isfinite()
    assert all(each.isfinite().all() for each in gradients(loss, objective, same))


@pytest.mark.parametrize("case", [case for case in ALL if "words" not in case.make().extras], ids=str)
def test_on_any_device_without_waiting(case: Case) -> None:
    """Tensors without values stand for a GPU's: nothing is made on another device, nothing is read back from it."""
    objective = case.make()
    batch = supply(case, objective, 6)
    outputs = [values.detach().to("meta").requires_grad_() for values in batch.outputs]
    loss = objective.to("meta")(outputs, {key: values.to("meta") for key, values in batch.extras.items()})
    assert (loss.device.type, loss.shape) == ("meta", ())
    assert all(each.device.type == "meta" for each in torch.autograd.grad(loss, outputs))
