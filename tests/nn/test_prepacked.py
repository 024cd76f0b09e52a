import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from munjang import BiEncoder
from munjang.nn.cpu import can_pack
from munjang.nn.linear import Linear
from munjang.nn.prepacked import prepack_exact
from tests.nn.test_encoder import batch_of
from tests.texts import mixed


@pytest.mark.skipif(not can_pack(torch.float32), reason="this torch has no oneDNN")
class TestPackedWeights:
    def layer(self) -> Linear:
        torch.manual_seed(0)
        layer = Linear(12, 7).eval()
        prepack_exact(layer)
        assert layer.prepacked is not None
        return layer

    @pytest.mark.parametrize("rows", [0, 1, 3, 8, 63, 64, 65, 129, 511, 512, 513, 1500])
    @pytest.mark.parametrize("activation", [None, torch.nn.functional.gelu, torch.tanh])
    def test_the_same_map(self, rows: int, activation: Callable[[Tensor], Tensor] | None) -> None:
        layer, x = self.layer(), torch.randn(rows, 12)
        with torch.inference_mode():
            found = layer(x, activation)
            plain = torch.nn.functional.linear(x, layer.weight, layer.bias)
        expected = plain if activation is None else activation(plain)
        assert found.shape == (rows, 7)
        assert torch.allclose(found, expected, atol=1e-6)

    def test_without_a_bias(self) -> None:
        layer = Linear(4, 3, bias=False).eval()
        prepack_exact(layer)
        x = torch.randn(2, 4)
        with torch.inference_mode():
            assert torch.allclose(layer(x), x @ layer.weight.T, atol=1e-6)

    def test_training_drops_them_and_results_follow_the_weights(self) -> None:
        layer, x = self.layer(), torch.randn(3, 12)
        layer.train()
        assert layer.prepacked is None
        with torch.no_grad():
            layer.weight.mul_(2)
        with torch.inference_mode():
            doubled = layer.eval()(x)
            assert torch.allclose(doubled, torch.nn.functional.linear(x, layer.weight, layer.bias), atol=1e-6)
            prepack_exact(layer)
            assert torch.allclose(layer(x), doubled, atol=1e-6)

    def test_gradients_do_not_pass_them_by(self) -> None:
        layer, x = self.layer(), torch.randn(3, 12, requires_grad=True)
        layer(x).sum().backward()
        assert x.grad is not None
        assert layer.weight.grad is not None

    def test_other_weights_another_dtype_or_a_copy(self) -> None:
        layer, other, x = self.layer(), Linear(12, 7), torch.randn(3, 12)
        layer.load_state_dict(other.state_dict())
        with torch.inference_mode():
            assert torch.allclose(layer(x), other(x), atol=1e-6)
            assert self.layer().to(torch.float64)(x.double()).dtype == torch.float64
            twin = copy.deepcopy(self.layer())
            assert torch.allclose(twin(x), self.layer()(x), atol=1e-6)
        prepack_exact(layer)
        assert layer.to(torch.bfloat16).prepacked is None

    def test_a_whole_network_is_packed_and_copied(self, tiny_bert: Path) -> None:
        network = BiEncoder.load(tiny_bert).network
        layers = [module for module in network.modules() if isinstance(module, Linear)]
        assert layers
        assert all(layer.prepacked is not None for layer in layers)
        batch = batch_of(network.encoder.shape.vocab_size)
        with torch.inference_mode():
            expected = network(batch)
            twin = copy.deepcopy(network)
            assert torch.allclose(twin(batch), expected, atol=1e-6)
            prepack_exact(twin)
            assert torch.equal(twin(batch), expected)
        network.train()
        assert all(layer.prepacked is None for layer in layers)


@pytest.mark.skipif(not can_pack(torch.bfloat16), reason="this CPU has no bf16 products")
def test_bf16_on_a_cpu_that_has_it(minilm: Path) -> None:
    exact, half = (BiEncoder.load(minilm, device="cpu", dtype=name) for name in ("float32", "bfloat16"))
    texts = mixed(60, longest=100)
    cosines = (exact.encode(texts) * half.encode(texts)).sum(1)
    assert half.network.encoder.blocks[0].up.prepacked is not None
    assert cosines.min() > 0.9995
