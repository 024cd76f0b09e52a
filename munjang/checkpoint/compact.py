"""Keep an encoder's weights in 8 bits, all else in float32: our compact format.    N rows of a weight, D columns.

Beside a weight of whole numbers [N, D] stand its steps, `.scale` [N], and behind a norm the powers of two by which
its columns were grown first, `.equal` [D], as nn/int8/dynamic.py does it: on a CPU with VNNI `dtype="int8"` finds the
same numbers again where a layer has dynamic scales; with static ones (nn/int8/static.py), and without VNNI, weights are
rounded once more.
"""

import torch
from torch import Tensor, nn

from munjang.errors import CheckpointError
from munjang.nn.blank import blank
from munjang.nn.encoder import Encoder
from munjang.nn.families.base import Names
from munjang.nn.heads import check_weight
from munjang.nn.int8.weights import equalisers, quantize_weights
from munjang.nn.prepacked import prepack_exact

FORMAT = "munjang-int8"  # as `save` calls it
FILE_STEM = "munjang_int8"  # never model.safetensors: sentence-transformers would take whole numbers for weights
PART_SUFFIXES = (SCALE_SUFFIX, EQUAL_SUFFIX) = (".scale", ".equal")  # of the tensors beside a weight
WORDS_OF = "munjang_words_of"  # key of config.json: the model of the package that has the same table of words
CPU_DTYPE = "munjang_cpu_dtype"  # key of config.json: what such a folder is computed in on a CPU that can, if not asked


def squeeze(encoder: Encoder, names: Names, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors of an encoder under transformers' names, its linear layers and embedding tables in 8 bits."""
    squeezed = dict(tensors)
    exponents = exponents_of(encoder)
    # next to nothing on disk, and added to every token or logit: the two segments in 8 bits moved MiniLM's vectors five
    # times as far as its whole vocabulary did
    exact = (encoder.embeddings.segment, encoder.relative)
    for path, module in encoder.named_modules():
        if not isinstance(module, nn.Linear | nn.Embedding) or module in exact:
            continue
        for name in names[f"{path}.weight"]:
            weight_ND = tensors[name]
            check_weight(f"The tensor {name}", weight_ND)
            if path in exponents:
                squeezed[name + EQUAL_SUFFIX] = exponents[path].clone()  # safetensors takes no tensor twice
                weight_ND = weight_ND * torch.exp2(exponents[path].float())
            squeezed[name], squeezed[name + SCALE_SUFFIX] = quantize_weights(weight_ND)
    return squeezed


def exponents_of(encoder: Encoder) -> dict[str, Tensor]:
    """Return the equalisers by layer as `dtype="int8"` finds them: in float32 on a CPU, whatever this encoder is in."""
    with blank():
        twin = Encoder(encoder.shape).eval()
    state = {name: tensor.detach().to("cpu", torch.float32) for name, tensor in encoder.state_dict().items()}
    twin.load_state_dict(state, assign=True)
    prepack_exact(twin)
    with torch.no_grad():
        equal = equalisers(twin)
    return {
        path: torch.log2(equal[module]).round().to(torch.int8)
        for path, module in twin.named_modules()
        if module in equal
    }


def restore(what: str, codes_ND: Tensor, scale_N: Tensor | None, equal_D: Tensor | None) -> Tensor:
    """Return the weight in float32: the same numbers on every machine, as nothing is rounded but one product."""
    again = "copy the folder again"
    if scale_N is None:
        raise CheckpointError(f"{what} is in 8 bits, and its {SCALE_SUFFIX} is missing; {again}.")
    if codes_ND.ndim != 2:
        raise CheckpointError(f"{what} is in 8 bits and of shape {tuple(codes_ND.shape)}; only matrices are; {again}.")
    for part, suffix, dtype, length in (
        (scale_N, SCALE_SUFFIX, torch.float32, codes_ND.shape[0]),
        (equal_D, EQUAL_SUFFIX, torch.int8, codes_ND.shape[1]),
    ):
        if part is not None and (part.dtype != dtype or part.shape != (length,)):
            actual = f"{part.dtype} of shape {tuple(part.shape)}"
            raise CheckpointError(f"{what}: its {suffix} is {actual}, not {dtype} of shape {(length,)}; {again}.")
    bad = int((~torch.isfinite(scale_N) | (scale_N <= 0)).sum())
    if bad:
        raise CheckpointError(f"{what}: {bad} numbers of its {SCALE_SUFFIX} are not finite and positive; {again}.")
    weight_ND = codes_ND.float() * scale_N[:, None]
    return weight_ND if equal_D is None else weight_ND * torch.exp2(-equal_D.float())
