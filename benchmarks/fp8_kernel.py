"""Rows to 8-bit floats in one pass, in Triton. Imported only where a GPU is used, or by Triton's interpreter.

T tokens, D width.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

ELEMENTS = 4096  # that one program holds: 32 a thread


@triton.jit
def _quantize(
    x,
    codes,
    scales,
    num_rows,
    width,
    least,
    largest_code,
    has_gelu: tl.constexpr,
    rows: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    at = tl.arange(0, block)
    is_in = (row < num_rows)[:, None] & (at < width)[None, :]
    place = row[:, None].to(tl.int64) * width + at[None, :]
    value = tl.load(x + place, mask=is_in, other=0.0).to(tl.float32)
    if has_gelu:  # by tanh, as the product's own pass does it
        value = value * tl.sigmoid(1.5957691216057308 * (value + 0.044715 * value * value * value))
    scale = tl.maximum(tl.max(tl.abs(value), 1), least) / largest_code
    scale += tl.sum(value * 0.0, 1)  # tl.max passes over NaN: with this, NaN and infinity make the scale NaN
    tl.store(scales + row, scale, mask=row < num_rows)
    tl.store(codes + place, (value / scale[:, None]).to(codes.dtype.element_ty), mask=is_in)


def quantize(
    x_TD: Tensor, least: float, largest_code: float, has_gelu: bool, dtype: torch.dtype = torch.float8_e4m3fn
) -> tuple[Tensor, Tensor]:
    """Codes [T, D] and the scale of each row [T, 1]; another `dtype` leaves the last rounding to the caller."""
    num_rows, width = x_TD.shape
    codes_TD = torch.empty(num_rows, width, dtype=dtype, device=x_TD.device)
    scale_T1 = torch.empty(num_rows, 1, dtype=torch.float32, device=x_TD.device)
    block = triton.next_power_of_2(width)
    rows = max(1, ELEMENTS // block)
    _quantize[(triton.cdiv(num_rows, rows),)](
        *(x_TD.contiguous(), codes_TD, scale_T1, num_rows, width, least, largest_code, has_gelu, rows, block)
    )
    return codes_TD, scale_T1
