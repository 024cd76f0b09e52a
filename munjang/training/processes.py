"""The processes of one training run, started by torchrun or accelerate: who we are, and what is exchanged.

One process is a run too. All that training exchanges goes through here: outputs that are gathered, gradients that are
added up once a step, and a word now and then.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from munjang.errors import MissingExtra


class Processes:
    """This process among those of the run."""

    def __init__(self, device: str | None = None) -> None:
        try:
            from accelerate import PartialState
        except ImportError:
            raise MissingExtra("accelerate", "train", "Training") from None
        state = PartialState(cpu=device == "cpu")
        self.rank: int = state.process_index
        self.world: int = state.num_processes
        # a device that was asked for by its number is one process's business; several take the one of their own
        self.device = torch.device(device) if device is not None and self.world == 1 else state.device
        if self.device.index is not None:
            torch.cuda.set_device(self.device)

    @property
    def is_main(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0

    def gather(self, own_BX: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """What every process has, in their order; `sizes` says how many rows each has."""
        if self.world == 1:
            return [own_BX]
        # equal sizes are what all backends can gather
        most = max(sizes)
        padded = own_BX.new_zeros(most, *own_BX.shape[1:])
        padded[: len(own_BX)] = own_BX
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return [part[:size] for part, size in zip(parts, sizes, strict=True)]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over all processes: one exchange for all of them."""
        if self.world == 1 or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        parts = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def tell(self, value: Any) -> Any:
        """The main process's value, for everyone."""
        if self.world == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            dist.barrier()
