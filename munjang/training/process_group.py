"""The processes of one training run, started by torchrun or accelerate launch, and what they exchange.

One process is a run too. Everything that training exchanges goes through here: gathered outputs, gradients that are
summed once an update, and a few broadcasts.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from munjang.engine.devices import pick_device
from munjang.errors import MunjangError

TIMEOUT = timedelta(hours=6)  # the other processes wait while the main one evaluates


class ProcessGroup:
    """This process among those of the run."""

    def __init__(self, device: str | None = None) -> None:
        requested = pick_device(device)
        is_cuda = requested.type == "cuda"
        self.world_size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = 0
        self.device = requested
        if self.world_size > 1:
            if not {"RANK", "LOCAL_RANK", "MASTER_ADDR"} <= os.environ.keys():
                raise MunjangError("WORLD_SIZE is set without RANK, LOCAL_RANK and MASTER_ADDR; start with torchrun.")
            self.rank = int(os.environ["RANK"])
            if is_cuda:  # every process has a device of its own, whatever number was asked for
                self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            backend = "nccl" if is_cuda else "gloo"
            if not dist.is_initialized():
                dist.init_process_group(backend, timeout=TIMEOUT)
            elif dist.get_backend() != backend:
                raise MunjangError(
                    f"These processes are connected by {dist.get_backend()}, which is not for {requested.type}. Start "
                    "training in fresh processes, and give --device cpu where there is no GPU."
                )
        if is_cuda and self.device.index is not None:
            torch.cuda.set_device(self.device)

    @property
    def is_main(self) -> bool:
        """Tell whether this process writes files and messages."""
        return self.rank == 0

    def all_gather(self, own_BX: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """Return the tensor of every process, in order; `sizes` says how many rows each has."""
        if self.world_size == 1:
            return [own_BX]
        # equal sizes are what all backends can gather
        padded = own_BX.new_zeros(max(sizes), *own_BX.shape[1:])
        padded[: len(own_BX)] = own_BX
        gathered = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(gathered, padded)
        return [tensor[:size] for tensor, size in zip(gathered, sizes, strict=True)]

    def all_reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors by their sums over all processes, in one exchange."""
        if self.world_size == 1 or not tensors:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        sums = torch.split(flat, [tensor.numel() for tensor in tensors])
        for tensor, sum_ in zip(tensors, sums, strict=True):
            tensor.copy_(sum_.view_as(tensor))

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """Overwrite these tensors with the main process's."""
        if self.world_size > 1:
            with torch.no_grad():
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def broadcast_object(self, value: Any) -> Any:
        """Return the main process's value."""
        if self.world_size == 1:
            return value
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def broadcast_tensors(self, tensors: Mapping[str, Tensor] | None) -> dict[str, Tensor]:
        """Return the main process's tensors; the others need not know their names and shapes."""
        if self.world_size == 1:
            return dict(tensors or {})
        shapes = self.broadcast_object([(name, list(own.shape), own.dtype) for name, own in (tensors or {}).items()])
        received = {}
        for name, shape, dtype in shapes:
            own = torch.empty(shape, dtype=dtype) if tensors is None else tensors[name]
            received[name] = own.to(self.device).contiguous()
            dist.broadcast(received[name], src=0)
        return received

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            dist.barrier()


def leave_together(is_over: bool) -> None:
    """Wait for all processes, so that each sees the files of the main one; end their group if this is the last stage.

    They end it at the same time: a process that is gone too early takes the others down.
    """
    if dist.is_available() and dist.is_initialized():
        dist.barrier()
        if is_over:
            dist.destroy_process_group()
