"""Instructions of this CPU that oneDNN uses, unless it was told to leave them unused.

ONEDNN_MAX_CPU_ISA makes oneDNN behave as on a weaker CPU. What is decided here follows it, so that setting it to AVX2
shows on any x86 machine what a CPU without AVX-512 computes.
"""

import os

import torch

# values of ONEDNN_MAX_CPU_ISA below which oneDNN adds two 8-bit products in 16 bits, or has no bf16 products
ISAS_WITHOUT_VNNI = frozenset({"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_CORE"})
ISAS_WITHOUT_BF16 = ISAS_WITHOUT_VNNI | {"AVX512_CORE_VNNI"}


def has_vnni() -> bool:
    """Return whether 8-bit products are added in 32 bits. AVX-VNNI without AVX-512 counts as no, which is safe."""
    return torch.cpu._is_vnni_supported() and _allowed_isa() not in ISAS_WITHOUT_VNNI


def has_bf16() -> bool:
    """Return whether this CPU has bf16 products and this torch uses them."""
    return torch.cpu._is_avx512_bf16_supported() and can_pack(torch.bfloat16)


def can_pack(dtype: torch.dtype) -> bool:
    """Return whether this torch and CPU have oneDNN's operators on prepacked weights of a dtype."""
    if not torch._C._has_mkldnn or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    if dtype == torch.int8:
        return torch.cpu._is_avx2_supported() and hasattr(torch.ops.onednn, "qlinear_pointwise")
    if dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported() and _allowed_isa() not in ISAS_WITHOUT_BF16
    return dtype == torch.float32


def _allowed_isa() -> str:
    return os.environ.get("ONEDNN_MAX_CPU_ISA", os.environ.get("DNNL_MAX_CPU_ISA", "")).upper()
