from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.nn.cpu import has_vnni
from munjang.nn.encoder import ACTIVATIONS
from munjang.nn.int8.dynamic import ACTIVATION_DEPTHS, Codes, DynamicPacking
from munjang.nn.linear import Linear


def naive_steps(weight: Tensor, is_pairwise: bool) -> Tensor:
    """The step of each output, number by number."""
    steps = []
    for row in weight.tolist():
        largest = max(map(abs, row))
        for one, other in zip(row[::2], row[1::2], strict=True) if is_pairwise else ():
            largest = max(largest, max(one, 0) + max(other, 0), -min(one, 0) - min(other, 0))
        steps.append(largest / 127)
    return torch.tensor(steps, dtype=torch.float64)


def naive(layer: Linear, x_TD: Tensor, codes: Codes, equal_D: Tensor, is_pairwise: bool) -> Tensor:
    """The same arithmetic in float64, number by number."""
    weight = layer.weight.double() * equal_D
    step_N = naive_steps(weight, is_pairwise)
    shrunk = x_TD.double() / equal_D
    rows = []
    for row in shrunk:
        largest = (row.abs() if codes.zero == 128 else row).max().clamp(min=codes.least) / (255 - codes.zero)
        whole = (row / largest).round().clamp(-codes.zero, 255 - codes.zero)
        rows.append(largest * step_N * ((weight / step_N[:, None]).round() @ whole))
    return torch.stack(rows) + (0 if layer.bias is None else layer.bias.double())


@pytest.mark.parametrize("rows", [1, 5, 64, 513])
@pytest.mark.parametrize("activation", [None, F.gelu, torch.tanh])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("is_pairwise", [True, False])
def test_the_same_as_by_hand(
    rows: int, activation: Callable[[Tensor], Tensor] | None, bias: bool, is_pairwise: bool
) -> None:
    if not is_pairwise and not has_vnni():
        pytest.skip("sums would overflow")
    torch.manual_seed(rows)
    layer = Linear(48, 20, bias=bias).eval()
    x, equal = torch.randn(rows, 48) * torch.rand(rows, 1) * 9, torch.exp2(torch.randint(-2, 3, (48,)).float())
    with torch.inference_mode():
        layer.prepacked = DynamicPacking(layer, Codes(), equal, None, is_pairwise)
        found = layer(x, activation)
        expected = naive(layer, x, Codes(), equal, is_pairwise)
    expected = expected if activation is None else activation(expected)
    # a value half-way between two codes may fall either way: at most one step of one input
    assert (found - expected).abs().max() < 0.02 * x.abs().max()
    assert (found - expected).abs().mean() < 1e-4


@pytest.mark.parametrize("name", sorted(ACTIVATION_DEPTHS))
def test_what_follows_an_activation_fits_its_codes(name: str) -> None:
    torch.manual_seed(0)
    codes, layer = Codes.after(name), Linear(64, 8).eval()
    x = ACTIVATIONS[name](torch.randn(300, 64) * torch.logspace(-2, 2, 300)[:, None])
    scaled = x / codes.largest(x)
    assert float(scaled.min()) >= -codes.zero * codes.step - 1e-6
    assert float(scaled.max()) <= 1 + 1e-6
    with torch.inference_mode():
        layer.prepacked = DynamicPacking(layer, codes, is_pairwise=True)
        error = layer(x) - F.linear(x, layer.weight, layer.bias)
    assert float((error.norm(dim=1) / codes.largest(x)[:, 0]).max()) < 0.05


def test_a_row_of_zeros_and_a_weight_of_zeros() -> None:
    layer = Linear(16, 4).eval()
    with torch.inference_mode():
        layer.weight[1] = 0
        layer.prepacked = DynamicPacking(layer, Codes(), is_pairwise=True)
        assert torch.equal(layer(torch.zeros(3, 16)), layer.bias.expand(3, 4))
        assert torch.equal(layer(torch.randn(3, 16))[:, 1], layer.bias[1].expand(3))


def test_the_mean_of_inputs_moves_the_bias() -> None:
    """With inputs that all are the mean, half of what rounding takes is back."""
    torch.manual_seed(0)
    layer, mean = Linear(64, 8).eval(), torch.randn(64)
    with torch.inference_mode():
        exact = F.linear(mean[None], layer.weight, layer.bias)
        plain, moved = (DynamicPacking(layer, Codes(), None, given, True) for given in (None, mean))
        whole = torch.round(layer.weight / plain.scale_N[:, None]) * plain.scale_N[:, None]
        lost = exact - F.linear(mean[None], whole, layer.bias)
        assert torch.allclose(moved.bias_N - plain.bias_N, lost[0] / 2, atol=1e-6)
