"""The encoder of every family: gradients, dropout, no padding, and one code for training and inference."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from munjang import BiEncoder
from munjang.errors import UnsupportedModel
from munjang.nn import attention, encoder
from munjang.nn.encoder import ACTIVATIONS, Architecture, Encoder, RelativeBias
from munjang.nn.linear import Linear
from munjang.nn.prepacked import prepack_exact
from munjang.text.packing import Packed, pack
from tests.models import NATIVE

LENGTHS = [9, 5, 5, 1]
SHAPE = Architecture(50, 16, 2, 4, 24, "gelu", 1e-12, 64, 64, num_types=2, attention_dropout=0.5)


def batch_of(vocab_size: int, lengths: list[int] = LENGTHS, num_types: int = 0) -> Packed:
    ids = np.random.default_rng(0).integers(5, vocab_size, sum(lengths), dtype=np.int32)
    types = (np.arange(sum(lengths)) % num_types).astype(np.int32) if num_types > 1 else None
    return pack(ids, np.array(lengths, np.int64), types)


@pytest.fixture(scope="module", params=NATIVE)
def loaded(request: pytest.FixtureRequest, make: Callable[..., Path]) -> Encoder:
    return BiEncoder.load(make(request.param)).network.encoder


@pytest.fixture
def network(loaded: Encoder) -> Encoder:
    """A copy of its own for each test, packed as it would be for inference."""
    network = copy.deepcopy(loaded)
    prepack_exact(network)
    return network


def test_gradients_reach_every_parameter(network: Encoder) -> None:
    network.train()
    batch = batch_of(network.shape.vocab_size, num_types=network.shape.num_types)
    network(batch).square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_dropout_in_training_only(network: Encoder) -> None:
    batch = batch_of(network.shape.vocab_size)
    has_dropout = max(network.shape.embedding_dropout, network.shape.attention_dropout, network.shape.out_dropout) > 0
    network.train()
    assert torch.equal(network(batch), network(batch)) is not has_dropout
    network.eval()
    assert torch.equal(network(batch), network(batch))


@pytest.mark.parametrize(
    "place", ["embedding_dropout", "attention_dropout", "out_dropout", "inner_dropout", "down_dropout"]
)
def test_each_dropout_is_done(place: str) -> None:
    nowhere = {"attention_dropout": 0.0}
    shape = Architecture(**{**SHAPE.__dict__, **nowhere, place: 0.5, "has_gate": place == "inner_dropout"})
    torch.manual_seed(0)
    network, batch = Encoder(shape).train(), batch_of(50)
    assert not torch.equal(network(batch), network(batch))
    network.eval()
    assert torch.equal(network(batch), network(batch))


def test_training_and_inference_are_one_network(network: Encoder) -> None:
    """With dropout off the states are the same, though inference uses packed weights and fused activations."""
    batch = batch_of(network.shape.vocab_size)
    with torch.inference_mode():
        packed = network(batch)
    for module in network.modules():
        if hasattr(module, "shape"):
            module.shape = Architecture(**{**module.shape.__dict__, **no_dropout()})
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "attention_dropout"):
            module.attention_dropout = 0.0
    trained = network.train()(batch)
    assert trained.requires_grad
    assert (trained - packed).abs().max() < 2e-5 * packed.abs().max()


def no_dropout() -> dict[str, float]:
    return dict.fromkeys(
        ("embedding_dropout", "attention_dropout", "out_dropout", "inner_dropout", "down_dropout"), 0.0
    )


def test_nothing_is_padded(network: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the slots that reach attention and every linear layer: exactly the tokens there are."""
    slots: list[int] = []
    real = attention.runs

    def counting(qkv: Tensor, *rest: object) -> Tensor:
        slots.append(len(qkv))
        return real(qkv, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(attention, "KERNELS", [(counting, lambda need: True)])
    hooks = [
        module.register_forward_hook(lambda _, given, out: slots.extend([len(given[0]), len(out)]))
        for module in network.modules()
        if isinstance(module, (Linear, nn.LayerNorm))
    ]
    with torch.inference_mode():
        network(batch_of(network.shape.vocab_size))
    for hook in hooks:
        hook.remove()
    assert len(slots) > 3 * network.shape.num_layers
    assert set(slots) == {sum(LENGTHS)}
    rectangles = batch_of(50).runs
    assert sum(texts * length for _, texts, length in rectangles) == sum(LENGTHS)


def test_layers_are_the_states_in_order(network: Encoder) -> None:
    batch = batch_of(network.shape.vocab_size)
    with torch.inference_mode():
        states = network.layers(batch)
        assert len(states) == network.shape.num_layers + 1
        assert torch.equal(states[-1], network(batch))
    assert all(state.shape == (sum(LENGTHS), network.shape.width) for state in states)


def test_a_text_is_the_same_alone(network: Encoder) -> None:
    batch = batch_of(network.shape.vocab_size)
    with torch.inference_mode():
        together = network(batch)
        alone = network(pack(batch.ids_T[9:14].numpy(), np.array([5])))
    assert (together[9:14] - alone).abs().max() < 1e-5 * together.abs().max()


@pytest.mark.parametrize("length", [1, 2, 9, 33, 60])
def test_one_text_by_its_shorter_way(network: Encoder, length: int) -> None:
    batch = batch_of(network.shape.vocab_size, [length], network.shape.num_types)
    with torch.no_grad():
        expected, found = network.layers(batch)[-1], network(batch)
    assert (found - expected).abs().max() < 1e-5 * expected.abs().max()  # as above; measured 4e-6


def test_the_shorter_way_is_for_one_text_in_packed_weights() -> None:
    network = Encoder(SHAPE).eval()
    prepack_exact(network)
    one = batch_of(50, [7])
    assert not network._is_single_text(one)  # gradients
    with torch.no_grad():
        assert network._is_single_text(one)
        assert not network._is_single_text(batch_of(50))
        assert not network._is_single_text(batch_of(50, [0]))
        cast(Linear, network.blocks[1].down).prepacked = None
        assert not network._is_single_text(one)


def test_no_tokens(network: Encoder) -> None:
    with torch.inference_mode():
        assert network(batch_of(50, [])).shape == (0, network.shape.width)
        assert network(batch_of(50, [0, 0])).shape == (0, network.shape.width)


# Parts


def test_activations_by_their_formula() -> None:
    x = torch.linspace(-3, 3, 13, dtype=torch.float64)
    gelu = 0.5 * x * (1 + torch.erf(x / 2**0.5))
    tanh = 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))
    for name, expected in {
        **dict.fromkeys(("gelu", "gelu_python"), gelu),
        **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), tanh),
        "relu": x.clamp(min=0),
        **dict.fromkeys(("silu", "swish"), x * torch.sigmoid(x)),
        "tanh": torch.tanh(x),
    }.items():
        assert torch.allclose(ACTIVATIONS[name](x), expected, atol=1e-7), name
        assert name in ACTIVATIONS


def test_shapes_that_can_not_be() -> None:
    with pytest.raises(UnsupportedModel, match="Unknown activation 'geglu'"):
        Architecture(**{**SHAPE.__dict__, "activation": "geglu"})
    with pytest.raises(UnsupportedModel, match="16 is not a multiple of the 3 heads"):
        Architecture(**{**SHAPE.__dict__, "num_heads": 3})


def test_relative_bias_like_transformers() -> None:
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    table = nn.Embedding(32, 4)
    found = RelativeBias(table)(200)[0]
    place = torch.arange(200)
    bucket = MPNetEncoder.relative_position_bucket(place[None, :] - place[:, None], num_buckets=32)
    assert torch.equal(found, table(bucket).permute(2, 0, 1))


def test_rotary_by_hand() -> None:
    """A pair of components is a complex number, turned by position times frequency."""
    width, base = 8, 100.0
    batch = batch_of(50, [5, 3])
    qkv = torch.randn(8, 3, 2, width)
    found = encoder.rotate(qkv, encoder.rotary_table(base, width, batch))
    position = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2], dtype=torch.float64)
    frequency = torch.tensor([base ** (-2 * i / width) for i in range(width // 2)], dtype=torch.float64)
    turn = torch.polar(torch.ones(8, 4, dtype=torch.float64), position[:, None] * frequency)[:, None, None]
    complex_ = torch.complex(qkv[..., :4].double(), qkv[..., 4:].double()) * turn
    expected = torch.cat([complex_.real, complex_.imag], -1)
    assert (found[:, :2] - expected[:, :2]).abs().max() < 1e-6
    assert torch.equal(found[:, 2], qkv[:, 2])  # values stay
