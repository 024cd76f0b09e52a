"""Static vectors fitted to a teacher: the mean over a text's pieces turns to the direction of the teacher's vector.

V pieces, T pieces of all texts in a row, N texts, B of a batch, K components.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from munjang.progress import Progress


@dataclass(frozen=True)
class Lesson:
    """Texts as pieces, and the vectors that they ought to have."""

    ids_T: Tensor
    lengths_N: Tensor
    targets_NK: Tensor  # of unit length

    def __len__(self) -> int:
        return len(self.lengths_N)

    def take(self, rows_B: Tensor) -> "Lesson":
        """Some of the texts, in this order."""
        starts_N, lengths_B = self.lengths_N.cumsum(0) - self.lengths_N, self.lengths_N[rows_B]
        shift_B = starts_N[rows_B] - (lengths_B.cumsum(0) - lengths_B)
        at_T = torch.repeat_interleave(shift_B, lengths_B)
        at_T = at_T + torch.arange(len(at_T), device=at_T.device)
        return Lesson(self.ids_T[at_T], lengths_B, self.targets_NK[rows_B])

    def cosines(self, weight_VK: Tensor) -> Tensor:
        """Of each text's static vector with the one that it ought to have."""
        starts_N = self.lengths_N.cumsum(0) - self.lengths_N
        sums_NK = F.embedding_bag(self.ids_T, weight_VK, starts_N, mode="sum")
        return (F.normalize(sums_NK, dim=-1) * self.targets_NK).sum(1)


def refine(
    start_VK: Tensor,
    lesson: Lesson,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
    progress: bool | None = None,
) -> Tensor:
    """Adam on one minus the cosine, the rate falling to zero; the vectors after it."""
    weight_VK = start_VK.clone().requires_grad_()
    optimizer = torch.optim.Adam([weight_VK], lr=learning_rate)
    generator = torch.Generator().manual_seed(seed)
    orders = [torch.randperm(len(lesson), generator=generator).to(weight_VK.device) for _ in range(epochs)]
    batches = [order_N[at : at + batch_size] for order_N in orders for at in range(0, len(lesson), batch_size)]
    with Progress(len(batches), "refining, batches", progress) as bar:
        for step, rows_B in enumerate(batches):
            optimizer.param_groups[0]["lr"] = learning_rate * (1 - step / len(batches))
            loss = 1 - lesson.take(rows_B).cosines(weight_VK).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            optimizer.step()
            bar.advance()
    return weight_VK.detach()
