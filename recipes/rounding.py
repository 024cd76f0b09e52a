"""Weights that lose next to nothing in 8 bits, because each rounding makes up for those before it.

One step of 8 bits is larger than what a mix of trainings changes in most weights, and where the start of the trainings
lies on such steps already, rounding each weight by itself takes the mix back to it. Here the columns of a layer are
rounded one after the other, and what that changes in the layer's outputs on typical texts is taken back by the columns
that are still to come (GPTQ, Frantar et al. 2022). Word vectors have no columns in common and are rounded as ever.

N outputs and D inputs of a layer.
"""

import torch
from torch import Tensor, nn

from munjang import BiEncoder
from munjang.checkpoint.compact import exponents_of
from munjang.errors import InputError
from munjang.nn.encoder import Encoder

DAMPING = 0.01  # of the mean of the diagonal
LARGEST = 127
MAX_PASSES = 5


def round_in_turn(model: BiEncoder, texts: list[str]) -> None:
    """Put the weights of all layers on the steps that `save(format="munjang-int8")` has for them.

    The powers of two that columns are grown by come from the weights themselves: where rounding changes them, the layer
    is rounded again.
    """
    encoder = model.network.encoder
    if not isinstance(encoder, Encoder) or not texts:
        raise InputError("Rounding needs an encoder that Munjang computes itself, and typical texts.")
    seen = products(model, texts)
    layers = {path: module for path, module in encoder.named_modules() if module in seen}
    exact = {path: module.weight.detach().clone() for path, module in layers.items()}
    done: dict[str, Tensor] = {}
    for _ in range(MAX_PASSES):
        found = exponents_of(encoder)
        wanted = {path: found.get(path, torch.zeros(exact[path].shape[1])) for path in layers}
        again = [path for path in layers if path not in done or not torch.equal(done[path], wanted[path])]
        if not again:
            break
        for path in again:
            grown_D = torch.exp2(wanted[path].float())
            weight_ND = in_turn(exact[path] * grown_D, seen[layers[path]] / torch.outer(grown_D, grown_D))
            with torch.no_grad():
                layers[path].weight.copy_(weight_ND / grown_D)
        done = wanted
    encoder.load_state_dict(encoder.state_dict())  # drops what is prepacked of the weights before


def products(model: BiEncoder, texts: list[str]) -> dict[nn.Module, Tensor]:
    """Multiply each layer's inputs with each other, summed over all tokens of the texts [D, D]."""
    found: dict[nn.Module, Tensor] = {}

    def see(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        found[module] = found.get(module, torch.zeros(())) + given[0].T @ given[0]

    hooks = [
        module.register_forward_pre_hook(see)
        for module in model.network.encoder.modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        model.encode(texts)
    finally:
        for hook in hooks:
            hook.remove()
    return found


def in_turn(weight_ND: Tensor, product_DD: Tensor) -> Tensor:
    """Whole multiples of a step per output; the largest weight of each is the last step, and stays as it is."""
    largest_N1 = weight_ND.abs().amax(1, keepdim=True).clamp(min=1e-10)
    scale_N, stays_ND = largest_N1[:, 0] / LARGEST, weight_ND.abs() >= largest_N1
    order_D = product_DD.diagonal().argsort(descending=True)  # what is felt most first: the others make up for it
    product_DD = product_DD[order_D][:, order_D].double()
    product_DD.diagonal().add_(DAMPING * product_DD.diagonal().mean() + 1e-12)
    passed_DD = torch.linalg.cholesky(torch.linalg.inv(product_DD), upper=True).float()
    left_DN, stays_DN = weight_ND.T[order_D].contiguous(), stays_ND.T[order_D]  # a column in one piece
    for at in range(len(left_DN)):
        wanted_N = left_DN[at].clone()
        steps_N = (wanted_N / scale_N).round().clamp(-LARGEST, LARGEST)
        ends_N = LARGEST * weight_ND[:, order_D[at]].sign()
        left_DN[at] = torch.where(stays_DN[at], ends_N, steps_N) * scale_N
        error_N = (wanted_N - left_DN[at]) / passed_DD[at, at]
        left_DN[at + 1 :] -= torch.outer(passed_DD[at, at + 1 :], error_N)
    return left_DN[order_D.argsort()].T.contiguous()
