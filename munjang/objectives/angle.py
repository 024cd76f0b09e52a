"""AnglE: the ranking of CoSENT by the angle of complex vectors instead of the cosine.    B examples, D dimension."""

import torch.nn.functional as F
from torch import Tensor

from munjang.objectives.cosent import CoSENT
from munjang.objectives.distances import unit


class AnglE(CoSENT):
    """CoSENT over |cosine + sine|, where the two halves of a vector are the real and the imaginary part.

    Its gradient does not fade where the cosine is flat, near 1 and −1 (Li and Li 2023).
    """

    def similarity(self, u_BD: Tensor, v_BD: Tensor) -> Tensor:
        odd = u_BD.shape[-1] % 2
        u_BD, v_BD = F.pad(unit(u_BD), (0, odd)), F.pad(unit(v_BD), (0, odd))
        (u_real, u_imaginary), (v_real, v_imaginary) = u_BD.chunk(2, dim=-1), v_BD.chunk(2, dim=-1)
        sines_B = (u_imaginary * v_real - u_real * v_imaginary).sum(-1)
        return ((u_BD * v_BD).sum(-1) + sines_B).abs()
