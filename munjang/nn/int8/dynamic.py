"""8-bit layers with dynamic activation scales, one for each row of the input.    T tokens, D width of the input, N out.

They keep a model's quality because of three things (docs/log.md, 2026-11-15):
- one scale for a batch would be coarser, and make a text's vector depend on its neighbours;
- large columns of the input are shrunk and the weights' columns grown by as much, half-way between the two
  (SmoothQuant); random tokens show which columns are large as well as real text does;
- behind GELU, which never gets below -0.17, nearly all of the 256 steps lie above zero.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.nn.encoder import Block
from munjang.nn.int8.codes import to_codes
from munjang.nn.int8.observe import Observation
from munjang.nn.int8.weights import quantize_weights, rounding_loss
from munjang.nn.linear import MAX_ROWS, Activation, Linear

# the lowest value of an activation, negated: how far the codes behind it reach below zero
ACTIVATION_DEPTHS = {"relu": 0.0, "gelu": 0.17, "gelu_python": 0.17, "silu": 0.2785, "swish": 0.2785}
ACTIVATION_DEPTHS |= dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), 0.1701)


@dataclass(frozen=True)
class Codes:
    """The codes of a row, from 0 to 255, where its largest value is the last code."""

    zero: int = 128
    least: float = 1e-10  # the smallest "largest value"; what is lower than zero must fit into the codes below it

    @classmethod
    def after(cls, activation: str) -> "Codes":
        """Return the codes for results of an activation."""
        if activation not in ACTIVATION_DEPTHS:
            return cls()
        zero = 16 if ACTIVATION_DEPTHS[activation] else 0
        return cls(zero, max(ACTIVATION_DEPTHS[activation] * (255 - zero) / zero if zero else 0.0, cls.least))

    @property
    def step(self) -> float:
        return 1 / (255 - self.zero)

    def largest(self, x_TD: Tensor) -> Tensor:
        """Return the largest value of each row: [T, 1]."""
        values = x_TD.abs() if self.zero == 128 else x_TD
        return values.amax(1, keepdim=True).clamp(min=self.least)


class DynamicPacking:
    """The 8-bit weights of a layer with dynamic activation scales: a scale per output and per row of the input."""

    def __init__(
        self,
        linear: Linear,
        codes: Codes,
        equal_D: Tensor | None = None,
        mean_D: Tensor | None = None,
        is_pairwise: bool = False,
    ) -> None:
        weight_ND, self.codes = linear.weight.detach(), codes
        self.bias_N = linear.bias.detach() if linear.bias is not None else torch.zeros(len(weight_ND))
        self.shrink_D = None if equal_D is None else 1 / equal_D
        grown_ND = weight_ND if equal_D is None else weight_ND * equal_D
        whole_ND, self.scale_N = quantize_weights(grown_ND, is_pairwise)
        if mean_D is not None:
            mean_D = mean_D if self.shrink_D is None else mean_D * self.shrink_D
            self.bias_N = self.bias_N + rounding_loss(grown_ND, whole_ND, self.scale_N, mean_D)
        self.weight = torch.ops.onednn.qlinear_prepack(whole_ND, [MAX_ROWS, linear.in_features])

    def __call__(self, x_TD: Tensor, activation: Activation | None, out_TN: Tensor | None) -> Tensor:
        if self.shrink_D is not None:
            x_TD = x_TD * self.shrink_D
        largest_T1 = self.codes.largest(x_TD)
        zero, step = self.codes.zero, self.codes.step
        sums_TN: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(to_codes(x_TD * largest_T1.reciprocal(), step, zero), step, zero, self.weight, self.scale_N, None, None),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        out_TN = sums_TN if out_TN is None else out_TN
        torch.addcmul(self.bias_N, sums_TN, largest_T1, out=out_TN)
        if activation is F.gelu:
            return F.gelu(out_TN, out=out_TN)  # type: ignore[call-arg]  # torch has it, its types do not
        return out_TN if activation is None else out_TN.copy_(activation(out_TN))


def prepack_dynamic(block: Block, observation: Observation, is_pairwise: bool) -> None:
    """Prepack the four linear layers of a block."""
    behind = Codes() if block.shape.has_gate else Codes.after(block.shape.activation)
    for linear in (block.qkv, block.out, block.up, block.down):
        codes = behind if linear is block.down else Codes()
        mean_D = observation.inputs[linear].mean_D
        linear.prepacked = DynamicPacking(linear, codes, observation.equal.get(linear), mean_D, is_pairwise)
