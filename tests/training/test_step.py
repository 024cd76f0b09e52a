from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.text.packing import pack
from tests.training.made import difference, examples, gradient

BI = {
    "classification": {},
    "regression": {},
    "in_batch": {},
    "cosent": {},
    "simcse": {},
    "batch_hard_triplet": {},
    "denoising": {},
    "masked": {},
}
COLUMNS = {"simcse": 1, "batch_hard_triplet": 1, "denoising": 1, "masked": 1}


def test_gradient_is_that_of_the_plain_network(tiny_bert: Path) -> None:
    """In-batch negatives by hand: every text through the network at once, cosines, cross-entropy."""
    rows = examples(12)
    loss, found = gradient(tiny_bert, "in_batch", rows, dropout=0.0)
    model = BiEncoder.load(tiny_bert, "cpu")
    network = model.network.requires_grad_(True)
    tokens = [model.tokenizer(column) for column in rows.texts]
    u, v = (F.normalize(network(pack(each.ids, each.lengths)), dim=-1) for each in tokens)
    wanted = F.cross_entropy(u @ v.t() / 0.05, torch.arange(12))
    wanted.backward()
    assert loss == pytest.approx(wanted.item(), rel=1e-5)
    by_hand = {f"network.{name}": p.grad for name, p in network.named_parameters() if p.grad is not None}
    assert difference({name: value for name, value in found.items() if name in by_hand}, by_hand) < 1e-5


@pytest.mark.parametrize("objective", BI)
def test_micro_batches_do_not_change_the_gradient(tiny_bert: Path, objective: str) -> None:
    """fp32 without dropout: the gradient cache, or micro_batch by chunk, against everything at once."""
    rows = examples(17, COLUMNS.get(objective, 2))
    loss, whole = gradient(tiny_bert, objective, rows, dropout=0.0)
    split_loss, in_parts = gradient(tiny_bert, objective, rows, batch_tokens=60, dropout=0.0)
    assert split_loss == pytest.approx(loss, rel=1e-5)
    assert difference(in_parts, whole) < 1e-5


@pytest.mark.parametrize("objective", ["in_batch", "cosent", "simcse"])
def test_cache_repeats_dropout(tiny_bert: Path, objective: str) -> None:
    """With dropout: the same micro-batches and random states, kept or computed a second time."""
    rows = examples(17, COLUMNS.get(objective, 2))
    loss, kept = gradient(tiny_bert, objective, rows, batch_tokens=60, is_cached=False, dropout=0.3)
    cached_loss, cached = gradient(tiny_bert, objective, rows, batch_tokens=60, is_cached=True, dropout=0.3)
    assert cached_loss == pytest.approx(loss, rel=1e-6)
    assert difference(cached, kept) < 1e-5
    other_loss, _ = gradient(tiny_bert, objective, rows, batch_tokens=60, dropout=0.0)
    assert other_loss != pytest.approx(loss, rel=1e-3)  # dropout was there


def test_two_passes_of_simcse_have_different_dropout(tiny_bert: Path) -> None:
    rows = examples(8, 1)
    with_dropout, _ = gradient(tiny_bert, "simcse", rows, dropout=0.3)
    without, _ = gradient(tiny_bert, "simcse", rows, dropout=0.0)
    assert with_dropout > without + 1e-3  # two equal vectors would find each other too easily


@pytest.mark.parametrize("objective", ["cross_bce", "cross_mse", "cross_in_batch"])
def test_cross_encoder_micro_batches(make: Callable[..., Path], objective: str) -> None:
    folder = make("bert", kind="cross", num_labels=1)
    rows = examples(11, labels=2)
    loss, whole = gradient(folder, objective, rows, dropout=0.0)
    split_loss, in_parts = gradient(folder, objective, rows, batch_tokens=80, dropout=0.0)
    assert split_loss == pytest.approx(loss, rel=1e-5)
    assert difference(in_parts, whole) < 1e-5


@pytest.mark.parametrize("family", ["roberta", "electra", "albert", "distilbert", "mpnet", "modernbert"])
def test_every_family_has_gradients_everywhere(make: Callable[..., Path], family: str) -> None:
    """In training mode with dropout: every weight of the encoder that a text can reach is moved."""
    _, found = gradient(make(family), "in_batch", examples(6))
    still = [name for name, value in found.items() if not value.any()]
    assert not still
    model = BiEncoder.load(make(family), "cpu")
    assert {f"network.{name}" for name, _ in model.network.named_parameters()} == set(found)


def test_matryoshka_and_layers(tiny_bert: Path) -> None:
    rows = examples(9)
    plain, _ = gradient(tiny_bert, "in_batch", rows, dropout=0.0)
    nested, _ = gradient(tiny_bert, "in_batch", rows, dropout=0.0, matryoshka=(32, 8))
    layered, layers = gradient(tiny_bert, "in_batch", rows, dropout=0.0, adaptive_layers=True)
    cached, in_parts = gradient(tiny_bert, "in_batch", rows, batch_tokens=60, dropout=0.0, adaptive_layers=True)
    assert nested > plain
    assert layered > plain
    assert cached == pytest.approx(layered, rel=1e-5)
    assert difference(in_parts, layers) < 1e-5


def test_wrong_number_of_columns_is_refused(tiny_bert: Path) -> None:
    with pytest.raises(InputError, match="text columns"):
        gradient(tiny_bert, "triplet", examples(4, 2))


def test_bi_encoder_objective_for_a_cross_encoder_is_refused(make: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="trains a cross-encoder"):
        gradient(make("bert"), "listnet", examples(4, 3))


def test_random_numbers_of_the_caller_stay(tiny_bert: Path) -> None:
    """`train` draws from its own seeds and leaves torch's where they were."""
    from munjang.training.train import train

    torch.manual_seed(7)
    before = torch.get_rng_state()
    train(BiEncoder.load(tiny_bert, "cpu"), examples(6), "regression", _quiet(max_steps=2))
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(torch.get_rng_state().numpy(), before.numpy())


def _quiet(**settings: object):  # type: ignore[no-untyped-def]
    from munjang.training.config import TrainConfig

    return TrainConfig(quiet=True, device="cpu", **settings)  # type: ignore[arg-type]


def test_tasks_of_one_update_weigh_the_same(tiny_bert: Path) -> None:
    """Denoising counts tokens, classification examples: the mean of the two, not 20 to 1."""
    from munjang.training.datasets import Dataset, prepare
    from munjang.training.process_group import ProcessGroup
    from munjang.training.step import Gradients
    from munjang.training.trainee import Trainee

    processes, config = ProcessGroup("cpu"), _quiet(dropout=0.0)
    trainee = Trainee(BiEncoder.load(tiny_bert, "cpu"), processes.device, config)
    prepared = [
        prepare(Dataset(data=examples(8, columns), objective=name), trainee, config, None)
        for name, columns in (("classification", 2), ("denoising", 1))
    ]
    gradients = Gradients(trainee.network, [dataset.objective for dataset in prepared], processes)
    parts, alone = [], []
    for dataset in prepared:
        for losses in (alone, parts):
            found = _step(trainee, dataset, processes)
            if losses is parts:
                parts.append(gradients.take(*found, 0.5))
            else:
                loss = gradients.finish([gradients.take(*found)])
                head = next(dataset.objective.parameters())
                losses.append((float(loss), head.grad.clone()))  # type: ignore[union-attr]
                trainee.network.zero_grad()
                dataset.objective.zero_grad()
    loss = gradients.finish(parts)
    assert float(loss) == pytest.approx((alone[0][0] + alone[1][0]) / 2, rel=1e-5)
    head = next(prepared[0].objective.parameters())
    torch.testing.assert_close(head.grad, alone[0][1] / 2, atol=1e-7, rtol=1e-4)


def _step(trainee, dataset, processes):  # type: ignore[no-untyped-def]
    from munjang.training.micro_batches import split
    from munjang.training.step import Step

    batch = dataset.batches(np.arange(8), 0, 1, np.random.default_rng(3))
    step = Step(trainee.network, processes, trainee.shapes, seed=5)
    return step(1, split(batch, dataset.objective.is_separable, 10_000, processes.device), dataset.objective)
