"""Rates and groups by hand values, and a moving average beside its formula."""

import math
from pathlib import Path

import pytest
import torch
from torch import nn

from munjang.bi_encoder import BiEncoder
from munjang.training.config import TrainConfig
from munjang.training.optimizer import Average, Optimizer, rate_at

RATES = {
    # 10 updates, of which 2 warm up
    "linear": [0.5, 1, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8],
    "cosine": [0.5, 1, *((1 + math.cos(math.pi * done / 8)) / 2 for done in range(8))],
    "constant": [0.5, *[1] * 9],
}


@pytest.mark.parametrize("schedule", RATES)
def test_schedules(schedule: str) -> None:
    config = TrainConfig(schedule=schedule, warmup=0.2)  # type: ignore[arg-type]
    assert [rate_at(step, 10, config) for step in range(10)] == pytest.approx(RATES[schedule])


def test_ends_of_the_warm_up() -> None:
    assert [rate_at(step, 4, TrainConfig(warmup=0)) for step in range(4)] == [1, 0.75, 0.5, 0.25]
    assert [rate_at(step, 4, TrainConfig(warmup=1)) for step in range(4)] == [0.25, 0.5, 0.75, 1]
    assert [rate_at(step, 1, TrainConfig()) for step in range(1)] == [1]  # a single update is no zero
    assert rate_at(0, 25, TrainConfig(warmup=0.1)) == pytest.approx(1 / 3)  # 2.5 updates are 3


def groups_of(optimizer: Optimizer) -> dict[str, tuple[float, float]]:
    """Name: its highest rate and its weight decay."""
    found = {
        id(p): (each["peak_rate"], each["weight_decay"]) for each in optimizer.adam.param_groups for p in each["params"]
    }
    return {name: found[id(parameter)] for name, parameter in optimizer.named}


def test_groups_by_layer_and_kind(tiny_bert: Path) -> None:
    """Three layers, each half as fast as the one above; the embeddings below them all; matrices decay."""
    network, head = BiEncoder.load(tiny_bert, "cpu").network, nn.Linear(4, 2)
    config = TrainConfig(learning_rate=1.0, layer_decay=0.5, head_rate=3.0, weight_decay=0.1)
    groups = groups_of(Optimizer(network, [head], config))
    assert groups["network.encoder.blocks.2.qkv.weight"] == (1.0, 0.1)
    assert groups["network.encoder.blocks.1.qkv.weight"] == (0.5, 0.1)
    assert groups["network.encoder.blocks.0.qkv.weight"] == (0.25, 0.1)
    assert groups["network.encoder.blocks.0.qkv.bias"] == (0.25, 0.0)
    assert groups["network.encoder.embeddings.word.weight"] == (0.125, 0.1)
    norms = {name: found for name, found in groups.items() if "norm" in name}
    assert norms
    assert all(decay == 0.0 for _, decay in norms.values())
    assert groups["objectives.0.weight"] == (3.0, 0.1)
    assert groups["objectives.0.bias"] == (3.0, 0.0)
    plain = groups_of(Optimizer(network, [head], TrainConfig(learning_rate=1.0)))
    assert {rate for rate, _ in plain.values()} == {1.0}


def test_frozen_weights_are_left_out(tiny_bert: Path) -> None:
    network = BiEncoder.load(tiny_bert, "cpu").network.requires_grad_(False)
    network.encoder.blocks[2].requires_grad_(True)
    names = groups_of(Optimizer(network, [], TrainConfig()))
    assert names
    assert all(name.startswith("network.encoder.blocks.2.") for name in names)


def test_an_update_by_hand() -> None:
    """AdamW's first step: decay by rate times weight decay, then the rate against the sign of the gradient."""
    layer = nn.Linear(1, 1)
    with torch.no_grad():
        layer.weight.fill_(2.0)
        layer.bias.fill_(3.0)
    optimizer = Optimizer(layer, [], TrainConfig(learning_rate=0.1, weight_decay=0.5, warmup=0, clip=None))
    layer.weight.grad, layer.bias.grad = torch.full((1, 1), 4.0), torch.full((1,), -7.0)
    optimizer.update(5, 10)  # half of the run is done: half the rate
    assert layer.weight.item() == pytest.approx(2.0 * (1 - 0.05 * 0.5) - 0.05)
    assert layer.bias.item() == pytest.approx(3.0 + 0.05)
    assert layer.weight.grad is None


def test_clipping_by_hand() -> None:
    """A gradient of length 5 becomes one of length 1: what Adam remembers of it tells."""
    layer = nn.Linear(1, 1)
    optimizer = Optimizer(layer, [], TrainConfig(clip=1.0))
    layer.weight.grad, layer.bias.grad = torch.full((1, 1), 3.0), torch.full((1,), 4.0)
    optimizer.update(0, 1)
    state = optimizer.state()
    assert state["exp_avg.network.weight"].item() == pytest.approx(0.1 * 3 / 5, rel=1e-4)
    assert state["exp_avg.network.bias"].item() == pytest.approx(0.1 * 4 / 5, rel=1e-4)


def test_state_goes_on() -> None:
    """Two updates, or one, its state moved into a new optimizer, and another one: the same bits."""

    def gradients(layer: nn.Linear, value: float) -> None:
        layer.weight.grad, layer.bias.grad = torch.full((2, 3), value), torch.full((2,), -value)

    torch.manual_seed(0)
    whole, first = nn.Linear(3, 2), nn.Linear(3, 2)
    first.load_state_dict(whole.state_dict())
    config = TrainConfig(learning_rate=0.1)
    one, two = Optimizer(whole, [], config), Optimizer(first, [], config)
    for optimizer, layer in ((one, whole), (two, first)):
        gradients(layer, 0.3)
        optimizer.update(0, 4)
    again = nn.Linear(3, 2)
    again.load_state_dict(first.state_dict())
    three = Optimizer(again, [], config)
    three.restore({name: value.clone() for name, value in two.state().items()})
    for optimizer, layer in ((one, whole), (three, again)):
        gradients(layer, 0.7)
        optimizer.update(1, 4)
    assert torch.equal(whole.weight, again.weight)
    assert torch.equal(whole.bias, again.bias)


def test_moving_average() -> None:
    """The decay of update n is (1 + n) / (10 + n) until that is more than asked for."""
    layer = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    average, wanted = Average(layer, 0.25), 1.0
    for step, decay in ((1, 2 / 11), (2, 3 / 12), (3, 0.25)):
        with torch.no_grad():
            layer.weight.mul_(2)
        average.update(step)
        wanted = decay * wanted + (1 - decay) * 2.0**step
        assert average.weights["weight"].item() == pytest.approx(wanted)
