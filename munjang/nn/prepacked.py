"""Weights prepacked for inference on this CPU, exact: fp32 or bf16 through oneDNN.    T tokens, D width in, N out."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from munjang.nn.cpu import can_pack
from munjang.nn.linear import MAX_ROWS, Activation, Linear

# activations that oneDNN computes in the same pass, exactly, and how it calls them
FUSED_ACTIVATIONS: dict[object, tuple[str, list[float], str]] = {F.gelu: ("gelu", [], "none")}


class Exact:
    """The fp32 or bf16 weights, prepacked by oneDNN: a tenth faster than MKL's sgemm, with GELU in the same pass."""

    def __init__(self, linear: Linear) -> None:
        self.bias = linear.bias
        self.weight = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), MAX_ROWS)

    def __call__(self, x_TD: Tensor, activation: Activation | None, out_TN: Tensor | None) -> Tensor:
        fused = FUSED_ACTIVATIONS.get(activation, ("none", [], ""))
        found_TN: Tensor = torch.ops.mkldnn._linear_pointwise(x_TD, self.weight, self.bias, *fused)
        found_TN = found_TN if activation is None or activation in FUSED_ACTIVATIONS else activation(found_TN)
        return found_TN if out_TN is None else out_TN.copy_(found_TN)


def prepack_exact(network: nn.Module) -> None:
    """Pack every linear layer of a network that is to be used for inference, where this CPU can."""
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, Linear) and module.weight.device.type == "cpu" and can_pack(module.weight.dtype):
                module.prepacked = Exact(module)
