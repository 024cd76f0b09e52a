import copy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from munjang import BiEncoder, CrossEncoder
from munjang.errors import InputError, UnsupportedModel
from munjang.nn.linear import Linear
from munjang.nn.packed import DEPTHS, Codes, Int8, can_pack, equalisers, in_steps, pack_exact
from munjang.nn.ranges import SWITCH
from tests.models import NATIVE
from tests.nn.test_encoder import batch_of
from tests.texts import mixed


@pytest.mark.skipif(not can_pack(torch.float32), reason="this torch has no oneDNN")
class TestPackedWeights:
    def layer(self) -> Linear:
        torch.manual_seed(0)
        layer = Linear(12, 7).eval()
        pack_exact(layer)
        assert layer.packed is not None
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
        pack_exact(layer)
        x = torch.randn(2, 4)
        with torch.inference_mode():
            assert torch.allclose(layer(x), x @ layer.weight.T, atol=1e-6)

    def test_training_drops_them_and_results_follow_the_weights(self) -> None:
        layer, x = self.layer(), torch.randn(3, 12)
        layer.train()
        assert layer.packed is None
        with torch.no_grad():
            layer.weight.mul_(2)
        with torch.inference_mode():
            doubled = layer.eval()(x)
            assert torch.allclose(doubled, torch.nn.functional.linear(x, layer.weight, layer.bias), atol=1e-6)
            pack_exact(layer)
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
        pack_exact(layer)
        assert layer.to(torch.bfloat16).packed is None

    def test_a_whole_network_is_packed_and_copied(self, tiny_bert: Path) -> None:
        network = BiEncoder.load(tiny_bert).network
        layers = [module for module in network.modules() if isinstance(module, Linear)]
        assert layers
        assert all(layer.packed is not None for layer in layers)
        batch = batch_of(network.encoder.shape.vocab_size)
        with torch.inference_mode():
            expected = network(batch)
            twin = copy.deepcopy(network)
            assert torch.allclose(twin(batch), expected, atol=1e-6)
            pack_exact(twin)
            assert torch.equal(twin(batch), expected)
        network.train()
        assert all(layer.packed is None for layer in layers)


# 8 bits

needs_int8 = pytest.mark.skipif(not can_pack(torch.int8), reason="this CPU or torch has no 8-bit products")


def naive(layer: Linear, x_TD: Tensor, codes: Codes, equal_D: Tensor) -> Tensor:
    """The same arithmetic in float64, number by number."""
    weight = layer.weight.double() * equal_D
    step_N = weight.abs().amax(1) / (127 if torch.cpu._is_vnni_supported() else 63)
    shrunk = x_TD.double() / equal_D
    rows = []
    for row in shrunk:
        largest = (row.abs() if codes.zero == 128 else row).max().clamp(min=codes.least) / (255 - codes.zero)
        whole = (row / largest).round().clamp(-codes.zero, 255 - codes.zero)
        rows.append(largest * step_N * ((weight / step_N[:, None]).round() @ whole))
    return torch.stack(rows) + (0 if layer.bias is None else layer.bias.double())


@pytest.fixture(params=["ranges", "rows"])
def int8_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Codes in ranges that are known before, where the CPU can; or with a scale for each row."""
    monkeypatch.setenv(SWITCH, request.param)
    return str(request.param)


@needs_int8
class TestInt8:
    @pytest.mark.parametrize("rows", [1, 5, 64, 513])
    @pytest.mark.parametrize("activation", [None, F.gelu, torch.tanh])
    @pytest.mark.parametrize("bias", [True, False])
    def test_the_same_as_by_hand(self, rows: int, activation: Callable[[Tensor], Tensor] | None, bias: bool) -> None:
        torch.manual_seed(rows)
        layer = Linear(48, 20, bias=bias).eval()
        x, equal = torch.randn(rows, 48) * torch.rand(rows, 1) * 9, torch.exp2(torch.randint(-2, 3, (48,)).float())
        with torch.inference_mode():
            layer.packed = Int8(layer, Codes(), equal)
            found = layer(x, activation)
            expected = naive(layer, x, Codes(), equal)
        expected = expected if activation is None else activation(expected)
        # a value half-way between two codes may fall either way: at most one step of one input
        assert (found - expected).abs().max() < 0.02 * x.abs().max()
        assert (found - expected).abs().mean() < 1e-4

    @pytest.mark.parametrize("name", sorted(DEPTHS))
    def test_what_follows_an_activation_fits_its_codes(self, name: str) -> None:
        from munjang.nn.encoder import ACTIVATIONS

        torch.manual_seed(0)
        codes, layer = Codes.behind(name), Linear(64, 8).eval()
        x = ACTIVATIONS[name](torch.randn(300, 64) * torch.logspace(-2, 2, 300)[:, None])
        scaled = x / codes.largest(x)
        assert float(scaled.min()) >= -codes.zero * codes.step - 1e-6
        assert float(scaled.max()) <= 1 + 1e-6
        with torch.inference_mode():
            layer.packed = Int8(layer, codes)
            error = layer(x) - F.linear(x, layer.weight, layer.bias)
        assert float((error.norm(dim=1) / codes.largest(x)[:, 0]).max()) < 0.05

    def test_a_row_of_zeros_and_a_weight_of_zeros(self) -> None:
        layer = Linear(16, 4).eval()
        with torch.inference_mode():
            layer.weight[1] = 0
            layer.packed = Int8(layer, Codes())
            assert torch.equal(layer(torch.zeros(3, 16)), layer.bias.expand(3, 4))
            assert torch.equal(layer(torch.randn(3, 16))[:, 1], layer.bias[1].expand(3))

    def test_quantizing_twice_changes_nothing(self) -> None:
        weight = torch.randn(30, 20)
        codes, step = in_steps(weight)
        again, same_step = in_steps(codes * step[:, None])
        assert torch.equal(codes, again)
        assert torch.allclose(step, same_step, rtol=1e-6)

    def test_large_columns_are_shrunk(self, tiny_bert: Path) -> None:
        encoder = BiEncoder.load(tiny_bert).network.encoder
        qkv = encoder.blocks[0].qkv
        with torch.no_grad():
            encoder.embeddings.norm.weight[3] = 200
            equal = equalisers(encoder)
        assert set(equal) == {layer for block in encoder.blocks for layer in (block.qkv, block.up)}
        assert int(equal[qkv].argmax()) == 3
        assert torch.equal(torch.log2(equal[qkv]), torch.log2(equal[qkv]).round())

    @pytest.mark.parametrize("family", NATIVE)
    def test_every_family(self, family: str, make: Callable[..., Path], int8_by: str) -> None:
        """Tiny wide random networks are much more sensitive than real ones."""
        exact, small = (BiEncoder.load(make(family), device="cpu", dtype=name) for name in ("float32", "int8"))
        texts = mixed(60, longest=40)
        cosines = (exact.encode(texts, normalize=True) * small.encode(texts, normalize=True)).sum(1)
        assert cosines.mean() > 0.99
        assert cosines.mean() < 1  # it is not the exact path

    def test_a_text_does_not_depend_on_its_neighbours(self, tiny_bert: Path, int8_by: str) -> None:
        model, texts = BiEncoder.load(tiny_bert, device="cpu", dtype="int8"), mixed(80, longest=60)
        together = model.encode(texts, normalize=True)
        alone = np.stack([model.encode(text, normalize=True) for text in texts])
        assert np.abs(together - alone).max() < 1e-2  # a code that falls the other way; measured 1e-3
        assert np.abs(together - alone).mean() < 1e-4

    def test_real_weights_keep_their_quality(self, minilm: Path, int8_by: str) -> None:
        exact, small = (BiEncoder.load(minilm, device="cpu", dtype=name) for name in ("float32", "int8"))
        texts = mixed(100, longest=100)
        cosines = (exact.encode(texts) * small.encode(texts)).sum(1)
        # made-up words: measured 0.9976 and 0.9897 by ranges, over 0.998 and 0.9938 by rows; natural text is above that
        mean, smallest = {"ranges": (0.997, 0.985), "rows": (0.998, 0.99)}[int8_by]
        assert cosines.mean() > mean
        assert cosines.min() > smallest

    def test_saving_writes_the_float_weights(self, tiny_bert: Path, tmp_path: Path) -> None:
        BiEncoder.load(tiny_bert, device="cpu", dtype="int8").save(tmp_path / "saved")
        texts = mixed(10, longest=20)
        expected = BiEncoder.load(tiny_bert, device="cpu").encode(texts)
        np.testing.assert_allclose(BiEncoder.load(tmp_path / "saved", device="cpu").encode(texts), expected, atol=2e-6)

    def test_cross_encoders(self, make: Callable[..., Path], int8_by: str) -> None:
        folder = make("bert", kind="cross", num_labels=1)
        exact, small = (CrossEncoder.load(folder, device="cpu", dtype=name) for name in ("float32", "int8"))
        pairs = list(zip(mixed(30, longest=20), mixed(30, longest=30), strict=True))
        expected, found = exact.predict(pairs), small.predict(pairs)
        assert (
            np.corrcoef(expected, found)[0, 1] > 0.9
        )  # of weights drawn wide; vocabularies differ a little from run to run
        assert not np.array_equal(expected, found)

    def test_what_has_no_8_bit_path(self, make: Callable[..., Path], tiny_bert: Path) -> None:
        with pytest.raises(UnsupportedModel, match="encoders that Munjang computes itself"):
            BiEncoder.load(make("qwen3"), device="cpu", dtype="int8")
        with pytest.raises(InputError, match="The device"):
            BiEncoder.load(tiny_bert, device="cuda:7", dtype="int8")


@pytest.mark.skipif(not can_pack(torch.bfloat16), reason="this CPU has no bf16 products")
def test_bf16_on_a_cpu_that_has_it(minilm: Path) -> None:
    exact, half = (BiEncoder.load(minilm, device="cpu", dtype=name) for name in ("float32", "bfloat16"))
    texts = mixed(60, longest=100)
    cosines = (exact.encode(texts) * half.encode(texts)).sum(1)
    assert half.network.encoder.blocks[0].up.packed is not None
    assert cosines.min() > 0.9995
