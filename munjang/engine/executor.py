"""One executor per model and device: threads that own the network, its streams and their own settings.

Everyone submits to it, from any thread. Because the network only ever runs there:
- the caller's torch settings (number of threads, inference mode, current stream) stay as they are;
- a forked child just starts threads of its own: OpenMP's workers belong to the thread that started them, so nothing
  waits for workers that the fork left behind.

On a CPU a single batch runs on all cores together, many batches run one per core: no barrier between operators, and
torch's attention does not scale over cores on short texts (docs/log.md, 2026-11-15).
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from munjang.engine import calibration
from munjang.engine.graphs import Graphs
from munjang.errors import InputError, MunjangError, unknown
from munjang.nn.encoder import Encoder
from munjang.nn.sample import SAMPLE_TOKENS, sample
from munjang.text.packing import Packed

T = TypeVar("T")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.int8}
# Tokens a batch: past these the rate no longer grows (docs/log.md, 2026-11-15). Wider networks fill a device sooner.
BUDGETS = {"cpu": 2048, "cuda": 65536, "mps": 16384}
CANDIDATES = {"cpu": (1024, 2048, 4096), "cuda": (32768, 65536, 131072)}  # of which calibration chooses
WORTH = 50  # batches: calibration takes as long as a few of them, so it waits until there was so much to do
# Multiplications of a lone batch below which more threads cost more than they give: one short text, a small network
FEW = 2e8
SMALLEST = 512  # tokens: a batch is not cut below this only to keep every core busy


@dataclass(frozen=True)
class Result:
    """A tensor that may still be on its way; `wait` gives it."""

    tensor: Tensor
    ready: torch.cuda.Event | None = None

    def wait(self) -> Tensor:
        """The tensor, once the device is done with it."""
        if self.ready is None:
            return self.tensor
        if self.tensor.is_cuda:  # stays there: the caller's stream waits, not the caller
            torch.cuda.current_stream(self.tensor.device).wait_event(self.ready)
            self.tensor.record_stream(torch.cuda.current_stream(self.tensor.device))
        else:
            self.ready.synchronize()
        return self.tensor


def apart(function: Callable[[], T]) -> T:
    """What a function gives, computed in a thread of its own.

    For work on tensors outside an executor, such as loading: in a forked child torch would wait in the caller's thread
    for workers that the fork left behind.
    """
    with ThreadPoolExecutor(1, "munjang") as pool:
        return pool.submit(function).result()


def pick_device(device: str | torch.device | None) -> torch.device:
    """The device asked for, or the best one here."""
    if device is None:
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(name)
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise unknown("device", device, BUDGETS) from error
    if found.type not in BUDGETS:
        raise unknown("device", found.type, BUDGETS)
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise InputError(f"The device {device!s} is not here; torch sees {torch.cuda.device_count()} CUDA devices.")
    if found.type == "mps" and not torch.backends.mps.is_available():
        raise InputError("The device mps is not here; torch sees no Apple GPU.")
    return found


def pick_dtype(dtype: str | None, device: torch.device) -> torch.dtype:
    """The dtype asked for; by default bfloat16 on a GPU that has it, else float32."""
    if dtype is None:
        has_bf16 = device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.bfloat16 if has_bf16 else torch.float32
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    if dtype == "int8" and device.type != "cpu":
        raise InputError(f"dtype='int8' is for a CPU, not {device.type}; leave it out (bfloat16 on a GPU that has it).")
    return DTYPES[dtype]


class Executor:
    """Runs a network's batches, one after the other, in a thread of its own."""

    def __init__(self, network: nn.Module, device: torch.device, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, not {threads}.")
        self.network, self.device, self.threads = network, device, threads
        self.num_workers = (threads or torch.get_num_threads()) if device.type == "cpu" else 1
        # a GPU waits for the tokenizer, whose time is spent outside the interpreter lock for the most part
        self.num_tokenizers = min(8, max(1, (os.cpu_count() or 2) // 2)) if device.type == "cuda" else 1
        self.limit: int | None = None  # tokens a batch, found when memory ran out and remembered
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        encoder = getattr(network, "encoder", None)
        is_graphed = self.stream is not None and isinstance(encoder, Encoder)
        self.graphs = Graphs(network, encoder, BUDGETS["cuda"]) if is_graphed else None  # type: ignore[arg-type]
        layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
        # an ONNX graph has its layers inside
        self.num_weights: int = getattr(network, "num_linear", 0) or sum(layer.weight.numel() for layer in layers)
        self._budget: int | None = None
        self._num_seen = 0
        self._locks: dict[int, threading.Lock] = {}
        self._pools: dict[bool, ThreadPoolExecutor] = {}
        self._pid = os.getpid()

    @property
    def num_sharing(self) -> int:
        """Cores among which this thread's work is divided."""
        return 1 if getattr(_here, "is_on_one_core", False) else self.num_workers

    def budget(self, num_tokens: int, asked: int | None = None) -> int:
        """Tokens a batch: what is asked for or suits the device, within what its memory has shown to hold."""
        if asked is not None and asked < 1:
            raise InputError(f"batch_tokens must be at least 1, not {asked}.")
        shared = max(-(-num_tokens // self.num_sharing), SMALLEST)  # so that no core is left without a batch
        # on one core somebody else decides how much there is at a time, and others are not to wait for a measurement
        suited = self._suited(num_tokens) if self.num_sharing == self.num_workers else BUDGETS[self.device.type]
        wanted = min(suited, shared) if asked is None else asked
        return wanted if self.limit is None else min(wanted, self.limit)

    def _suited(self, num_tokens: int) -> int:
        """Tokens a batch on this machine; measured when there is enough to do for it to be worth it."""
        usual, candidates = BUDGETS[self.device.type], CANDIDATES.get(self.device.type)
        encoder = getattr(self.network, "encoder", None)
        if candidates is None or not isinstance(encoder, Encoder) or not calibration.is_on():
            return usual
        self._num_seen += num_tokens
        if self._budget is None and self._num_seen >= WORTH * usual:
            key = calibration.key_of(encoder, self.device, self.num_workers, calibration.how_packed(self.network))
            self._budget = calibration.find(key, candidates, partial(self._rate, encoder))
            if self.graphs is not None:
                self.graphs.budget = self._budget
        return self._budget or usual

    def _rate(self, encoder: Encoder, budget: int) -> float:
        """Tokens a second with batches of so many, on one core or the GPU."""
        batch = sample(encoder, [SAMPLE_TOKENS] * (budget // SAMPLE_TOKENS))
        return self._pool(is_one_of_many=True).submit(self._timed, batch).result()

    def _timed(self, batch: Packed) -> float:
        """In the thread that computes: other batches are on their way, and waiting for them would look like work."""
        if self.stream is not None:
            self.stream.synchronize()
        clock = time.thread_time if self.stream is None else time.perf_counter  # on a core nobody else's work counts
        start = clock()
        self._run(batch, self.network, keeps_device=False).wait()
        return batch.num_tokens / max(clock() - start, 1e-9)

    def lay_out(self, batch: Packed) -> Packed:
        """The batch in the form from which it gets to the device soonest; in any thread."""
        if self.device.type != "cuda":
            return batch
        return batch.pinned() if self.graphs is None else self.graphs.lay_out(batch)

    def run(self, batch: Packed, network: Callable[[Packed], Tensor]) -> Tensor:
        """The network's result for a batch, by a graph where it is laid out for one."""
        if batch.laid_out is None or self.graphs is None:
            return network(batch)
        return self.graphs(batch, network)

    def submit(
        self,
        batch: Packed,
        forward: Callable[[Packed], Tensor],
        keeps_device: bool = False,
        is_one_of_many: bool = False,
    ) -> "Future[Result]":
        """Compute `forward` of a batch; the result comes to the host unless it is to stay on the device."""
        is_narrow = is_one_of_many or self.num_sharing == 1 or batch.num_tokens * self.num_weights < FEW
        return self._pool(is_narrow).submit(self._run, batch, forward, keeps_device)

    def call(self, function: Callable[[], Tensor]) -> Tensor:
        """Compute something else there, on the host: after a fork the caller's own thread could wait for ever."""
        return self._pool(self.num_sharing == 1).submit(torch.inference_mode()(function)).result()

    def _pool(self, is_one_of_many: bool) -> ThreadPoolExecutor:
        is_narrow = is_one_of_many and self.num_workers > 1
        with _lock_of(self._locks):
            if self._pid != os.getpid():
                if self.device.type == "cuda":
                    raise MunjangError(
                        "CUDA can't be used in a forked process; use the spawn method, or load the model there."
                    )
                self._pools, self._pid = {}, os.getpid()
            if is_narrow not in self._pools:
                workers, threads = (self.num_workers, 1) if is_narrow else (1, self.threads)
                self._pools[is_narrow] = ThreadPoolExecutor(workers, "munjang", set_threads, (threads,))
            return self._pools[is_narrow]

    def _run(self, batch: Packed, forward: Callable[[Packed], Tensor], keeps_device: bool) -> Result:
        with torch.inference_mode():
            if self.stream is None:
                tensor = self._compute(batch, forward)
                return Result(tensor if keeps_device else tensor.cpu())
            with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
                tensor = self._compute(batch, forward)
                if not keeps_device:
                    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
                    tensor = host.copy_(tensor, non_blocking=True)
                ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
                ready.record(self.stream)
            return Result(tensor, ready)

    def _compute(self, batch: Packed, forward: Callable[[Packed], Tensor]) -> Tensor:
        try:
            return forward(batch if batch.laid_out is not None else batch.to(self.device))
        except torch.OutOfMemoryError as error:
            if len(batch.lengths) < 2:
                raise MunjangError(
                    f"One text of {batch.num_tokens} tokens does not fit into the memory of {self.device}; "
                    "lower the model's max_length or use another device."
                ) from error
        # outside the handler: the traceback would keep the failed batch's tensors alive
        half = max(batch.num_tokens // 2, 1)
        self.limit = half if self.limit is None else min(half, self.limit)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        first, second = batch.halves()
        return torch.cat([self._compute(first, forward), self._compute(second, forward)])


_setting: dict[int, threading.Lock] = {}
_here = threading.local()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Leave the other cores alone: they have batches of their own, which this thread knows nothing of."""
    _here.is_on_one_core = True
    try:
        yield
    finally:
        _here.is_on_one_core = False


def _lock_of(locks: dict[int, threading.Lock]) -> threading.Lock:
    """The lock of this process: in a forked child, the parent's may be held by a thread that is not there."""
    return locks.setdefault(os.getpid(), threading.Lock())


def set_threads(number: int | None) -> None:
    """Let torch use so many cores from this thread, and leave the setting of all others alone."""
    if number is None:
        return
    with _lock_of(_setting):
        others = torch.get_num_threads()
        torch.set_num_threads(number)
        # torch keeps the last number set as what new threads start with: give them back theirs
        restore = threading.Thread(target=torch.set_num_threads, args=(others,))
        restore.start()
        restore.join()
