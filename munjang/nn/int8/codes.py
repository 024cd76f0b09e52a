"""Values as codes from 0 to 255, the input of 8-bit products."""

import warnings

import torch
from torch import Tensor


def to_codes(x_TD: Tensor, step: float, zero: int) -> Tensor:
    """Round values to codes; `zero` is the code of 0."""
    # the only rounding of torch that uses vector instructions; its result's bytes, as int_repr copies them one by one
    coded_TD = torch.quantize_per_tensor(x_TD, step, zero, torch.quint8)
    return torch.empty(0, dtype=torch.uint8).set_(coded_TD.untyped_storage(), 0, x_TD.shape, (x_TD.shape[1], 1))


def silence_deprecation() -> None:
    """Silence torch's one-time deprecation warning of its rounding, by triggering it while it is suppressed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        to_codes(torch.zeros(1, 1), 1.0, 0)
