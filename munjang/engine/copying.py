"""Rows of a GPU to an array of the host: through two pieces of pinned memory, in a thread, while the GPU computes."""

from concurrent.futures import Future, ThreadPoolExecutor

import torch
from torch import Tensor

PIECE_BYTES = 1 << 24  # of pinned memory, which torch keeps for the next call


class Copier:
    """Copies windows of rows to their places in one array, in the order in which they come."""

    def __init__(self, target: Tensor, device: torch.device) -> None:
        self.target, self.device = target, device
        self.is_gpu = device.type == "cuda"
        self.waiting: list[Future[None]] = []
        if self.is_gpu:
            self.pool = ThreadPoolExecutor(1, "munjang-copy")
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
            rows = max(1, PIECE_BYTES // max(1, target.shape[1] * target.itemsize))
            self.pieces = torch.empty(2, min(rows, max(len(target), 1)), target.shape[1], pin_memory=True)

    def __call__(self, rows: Tensor, first_row: int) -> None:
        """Copy rows, once this thread's stream has computed them, to the target from `first_row` on."""
        if not self.is_gpu:
            self.target[first_row : first_row + len(rows)] = rows
            return
        ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
        ready.record(torch.cuda.current_stream(self.device))
        self.waiting.append(self.pool.submit(self._copy, rows, first_row, ready))

    def done(self) -> None:
        """Wait until everything is there."""
        for future in self.waiting:
            future.result()
        if self.is_gpu:
            self.pool.shutdown()

    @torch.inference_mode()
    def _copy(self, rows: Tensor, first_row: int, ready: torch.cuda.Event) -> None:
        size, last = self.pieces.shape[1], None
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            self.stream.wait_event(ready)
            rows.record_stream(self.stream)
            for number, start in enumerate(range(0, len(rows), size)):
                part = rows[start : start + size]
                piece = self.pieces[number % 2, : len(part)].copy_(part, non_blocking=True)
                is_there = torch.cuda.Event()  # type: ignore[no-untyped-call]
                is_there.record(self.stream)
                if last is not None:
                    self._store(*last)
                last = (piece, first_row + start, is_there)
            if last is not None:
                self._store(*last)

    def _store(self, piece: Tensor, first_row: int, is_there: torch.cuda.Event) -> None:
        is_there.synchronize()
        self.target[first_row : first_row + len(piece)] = piece
