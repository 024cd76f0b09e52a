"""The processes of one training run, started by torchrun or accelerate: who we are, and what is exchanged.

One process is a run too. All that training exchanges goes through here: outputs that are gathered, gradients that are
added up once a step, and a word now and then.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from munjang.engine.devices import pick_device
from munjang.errors import MissingExtra, MunjangError


class Processes:
    """This process among those of the run."""

    def __init__(self, device: str | None = None) -> None:
        try:
            from accelerate import PartialState
        except ImportError:
            raise MissingExtra("accelerate", "train", "Training") from None
        asked = pick_device(device)
        many = int(os.environ.get("WORLD_SIZE", "1")) > 1
        # others wait while the main process evaluates
        state = PartialState(cpu=asked.type == "cpu", **({"timeout": timedelta(hours=6)} if many else {}))
        self.rank: int = state.process_index
        self.world: int = state.num_processes
        if many and self.world == 1:
            raise MunjangError(
                "This is one of several processes, but they are not connected: one of them was used before on another "
                "device. Start training in fresh processes, and give --device cpu where there is no GPU."
            )
        # a device that was asked for by its number is one process's business; several take the one of their own
        self.device = asked if self.world == 1 or asked.type == "cpu" else state.device
        if self.device.type == "cuda" and self.device.index is not None:
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

    def share(self, tensors: Sequence[Tensor]) -> None:
        """Give everyone the main process's values of these tensors."""
        if self.world > 1:
            with torch.no_grad():
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def tell_tensors(self, tensors: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """The main process's tensors, for everyone, one after the other."""
        if self.world == 1:
            return dict(tensors or {})
        shapes = self.tell([(name, list(each.shape), each.dtype) for name, each in (tensors or {}).items()])
        found = {}
        for name, shape, dtype in shapes:
            given = torch.empty(shape, dtype=dtype) if tensors is None else tensors[name]
            found[name] = given.to(self.device).contiguous()
            dist.broadcast(found[name], src=0)
        return found

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            dist.barrier()


def meet(is_over: bool) -> None:
    """Wait until all processes are here: what the main one has written is there for everyone.

    Where it is over they part, all at the same time: one that is gone too early takes the others down.
    """
    if dist.is_available() and dist.is_initialized():
        dist.barrier()
        if is_over:
            dist.destroy_process_group()
