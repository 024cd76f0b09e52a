"""Weights packed for inference on this CPU: exact ones through oneDNN, and 8-bit ones.

T tokens, D width of the input, N of the output.

8 bits keep a model's quality because of three things, each measured (docs/log.md, 2026-11-15):
- every row of the input has its own scale, every output its own (one scale for a batch costs 2.5 % of the cosine, and
  makes a text's vector depend on its neighbours);
- large columns of the input are shrunk and the weights' columns grown by as much, half-way between the two
  (SmoothQuant); random words of the vocabulary show which columns are large as well as real text does;
- behind GELU, which never gets below -0.17, nearly all of the 256 steps lie above zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.errors import UnsupportedModel
from munjang.nn.encoder import Block, Encoder
from munjang.nn.fixed import hush, in_codes
from munjang.nn.linear import BLOCK, Activation, Linear
from munjang.text.packing import Packed, pack

# activations that oneDNN computes in the same pass, exactly, and how it calls them
FUSED: dict[object, tuple[str, list[float], str]] = {F.gelu: ("gelu", [], "none")}
# the lowest value of an activation, negated: how far the codes behind it reach below zero
DEPTHS = {"relu": 0.0, "gelu": 0.17, "gelu_python": 0.17, "silu": 0.2785, "swish": 0.2785}
DEPTHS |= dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), 0.1701)
SAMPLE_TEXTS, SAMPLE_TOKENS = 16, 32


class Exact:
    """fp32 or bf16 weights as oneDNN wants them: a tenth faster than MKL's sgemm, and GELU in the same pass."""

    def __init__(self, linear: Linear) -> None:
        self.bias = linear.bias
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), BLOCK)

    def __call__(self, x_TD: Tensor, activation: Activation | None, out_TN: Tensor | None) -> Tensor:
        fused = FUSED.get(activation, ("none", [], ""))
        found_TN: Tensor = torch.ops.mkldnn._linear_pointwise(x_TD, self.weight, self.bias, *fused)
        found_TN = found_TN if activation is None or activation in FUSED else activation(found_TN)
        return found_TN if out_TN is None else out_TN.copy_(found_TN)


@dataclass(frozen=True)
class Codes:
    """How a row's values become 0 to 255, its largest value being the last step."""

    zero: int = 128
    least: float = 1e-10  # the smallest "largest value"; what is lower than zero must fit into the codes below it

    @classmethod
    def behind(cls, activation: str) -> "Codes":
        """For what an activation gives."""
        if activation not in DEPTHS:
            return cls()
        zero = 16 if DEPTHS[activation] else 0
        return cls(zero, max(DEPTHS[activation] * (255 - zero) / zero if zero else 0.0, cls.least))

    @property
    def step(self) -> float:
        return 1 / (255 - self.zero)

    def largest(self, x_TD: Tensor) -> Tensor:
        """Of each row: [T, 1]."""
        values = x_TD.abs() if self.zero == 128 else x_TD
        return values.amax(1, keepdim=True).clamp(min=self.least)


class Int8:
    """Weights in 8 bits with a scale per output; inputs in 8 bits with a scale per row; sums in 32 bits, exact."""

    def __init__(self, linear: Linear, codes: Codes, equal_D: Tensor | None = None) -> None:
        weight_ND, self.codes = linear.weight.detach(), codes
        self.bias_N = linear.bias.detach() if linear.bias is not None else torch.zeros(len(weight_ND))
        self.shrink_D = None if equal_D is None else 1 / equal_D
        whole_ND, self.scale_N = in_steps(weight_ND if equal_D is None else weight_ND * equal_D, _largest_step())
        self.weight = torch.ops.onednn.qlinear_prepack(whole_ND, [BLOCK, linear.in_features])

    def __call__(self, x_TD: Tensor, activation: Activation | None, out_TN: Tensor | None) -> Tensor:
        if self.shrink_D is not None:
            x_TD = x_TD * self.shrink_D
        largest_T1 = self.codes.largest(x_TD)
        zero, step = self.codes.zero, self.codes.step
        sums_TN: Tensor = torch.ops.onednn.qlinear_pointwise(
            *(in_codes(x_TD * largest_T1.reciprocal(), step, zero), step, zero, self.weight, self.scale_N, None, None),
            *(1.0, 0, torch.float32, "none", [], ""),
        )
        out_TN = sums_TN if out_TN is None else out_TN
        torch.addcmul(self.bias_N, sums_TN, largest_T1, out=out_TN)
        if activation is F.gelu:
            return F.gelu(out_TN, out=out_TN)  # type: ignore[call-arg]  # torch has it, its types do not
        return out_TN if activation is None else out_TN.copy_(activation(out_TN))


def in_steps(weight_ND: Tensor, largest: int = 127) -> tuple[Tensor, Tensor]:
    """Weights as whole numbers of a step per output, and the steps."""
    scale_N = weight_ND.abs().amax(1).clamp(min=1e-10) / largest
    return (weight_ND / scale_N[:, None]).round().to(torch.int8), scale_N


def _largest_step() -> int:
    """Without VNNI two products are added in 16 bits: 2 * 255 * 63 still fits."""
    return 127 if torch.cpu._is_vnni_supported() else 63


def can_pack(dtype: torch.dtype) -> bool:
    """Whether this torch and CPU have oneDNN's packed operators for a dtype."""
    if not torch._C._has_mkldnn or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    if dtype == torch.int8:
        return torch.cpu._is_avx2_supported() and hasattr(torch.ops.onednn, "qlinear_pointwise")
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def pack_exact(network: nn.Module) -> None:
    """Pack every linear layer of a network that is to be used for inference, where this CPU can."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, Linear) and module.weight.device.type == "cpu" and can_pack(module.weight.dtype):
                module.packed = Exact(module)


def pack_int8(encoder: nn.Module) -> None:
    """Pack the layers of an encoder in 8 bits; what follows it stays as it is."""
    if not can_pack(torch.int8):
        raise UnsupportedModel("dtype='int8' needs an x86 CPU with AVX2 and a torch with oneDNN; leave dtype out.")
    if not isinstance(encoder, Encoder):
        raise UnsupportedModel(
            f"dtype='int8' is for encoders that Munjang computes itself, not {type(encoder).__name__}; leave it out."
        )
    hush()
    shape = encoder.shape
    behind = Codes() if shape.has_gate else Codes.behind(shape.activation)
    with torch.no_grad():
        equal = equalisers(encoder)
        for block in blocks_of(encoder):
            for linear in (block.qkv, block.up):
                linear.packed = Int8(linear, Codes(), equal[linear])
            block.out.packed = Int8(block.out, Codes())
            block.down.packed = Int8(block.down, behind)


def blocks_of(encoder: Encoder) -> list[Block]:
    """The layers; shared ones once."""
    return [block for block in encoder.blocks if isinstance(block, Block)]


def equalisers(encoder: Encoder) -> dict[nn.Module, Tensor]:
    """For the layers behind a norm: by how much each column of the input is to be shrunk."""
    largest: dict[nn.Module, Tensor] = {}

    def see(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        columns_D = given[0].abs().amax(0)
        largest[module] = torch.maximum(largest.get(module, columns_D), columns_D)

    layers = [linear for block in blocks_of(encoder) for linear in (block.qkv, block.up)]
    hooks = [linear.register_forward_pre_hook(see) for linear in layers]
    try:
        encoder(sample(encoder, [SAMPLE_TOKENS] * SAMPLE_TEXTS))
    finally:
        for hook in hooks:
            hook.remove()
    return {linear: _equaliser(linear.weight, largest[linear]) for linear in layers}


def sample(encoder: Encoder, lengths: Sequence[int], has_ends: bool = False) -> Packed:
    """Texts of random words of the vocabulary, on demand with what stands around every text; always the same."""
    shape, (before, behind) = encoder.shape, encoder.ends if has_ends else ((), ())
    lengths = [min(length, shape.max_tokens) for length in lengths]
    words = np.random.default_rng(0).integers(0, shape.vocab_size, sum(lengths))
    cut = np.split(words, np.cumsum(lengths)[:-1])
    texts = [np.array([*before, *text, *behind][: shape.max_tokens]) for text in cut]
    texts.sort(key=len, reverse=True)
    return pack(np.concatenate(texts), np.array([len(text) for text in texts]), pad_id=shape.pad_id)


def _equaliser(weight_ND: Tensor, largest_D: Tensor) -> Tensor:
    """Half-way: as large in the input as in the weights; by powers of two, so that undoing it is exact."""
    equal_D = (largest_D.clamp(min=1e-5) / weight_ND.abs().amax(0).clamp(min=1e-5)).sqrt()
    return torch.exp2(torch.log2(equal_D / equal_D.mean()).round())
