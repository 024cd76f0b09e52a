"""Step 3, run: one executor per model and device, whose threads own the network, its streams and their settings.

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
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from munjang.engine import tuning
from munjang.engine.ahead import check_stopped
from munjang.engine.graphs import Graphs
from munjang.engine.pack import Batch, Budget
from munjang.errors import InputError, MunjangError
from munjang.nn.base import Network
from munjang.nn.encoder import Encoder
from munjang.nn.sample import SAMPLE_TOKENS, sample
from munjang.nn.threads import is_on_one_core, lock_of, set_threads
from munjang.text.packing import Packed

Forward = Callable[[Packed], Tensor]
Finish = Callable[[Tensor], Tensor]
# Tokens a batch: past these the rate no longer grows (docs/log.md, 2026-11-15). Wider networks fill a device sooner.
BUDGETS = {"cpu": 2048, "cuda": 65536, "mps": 16384}
CANDIDATE_BUDGETS = {"cpu": (1024, 2048, 4096), "cuda": (32768, 65536, 131072)}  # tuning chooses one of these
MIN_BATCHES_TO_TUNE = 50  # tuning takes as long as a few batches
# With fewer multiplications in a single batch threads cost more than they gain (a short text, a small network)
MIN_MULTIPLICATIONS_FOR_ALL_CORES = 2e8
MIN_TOKENS_TO_SHARE = 512  # a batch is not cut below this only to keep every core busy
MAX_SPREAD_SHARE = 1 / 3  # of a batch: so much of it is spread over the batches before it on a GPU
MAX_READY_BATCHES = 2  # beside those being computed: enough to keep a device busy, few enough to bound memory
MAX_QUEUED_BATCHES = 8  # launched on a GPU whose results stay there: as much as it computes while a window is tokenized


def unchanged(results: Tensor) -> Tensor:
    """Return the results as they are."""
    return results


@dataclass(frozen=True)
class Result:
    """A tensor that the device may still be computing; `wait` returns it."""

    tensor: Tensor
    ready: torch.cuda.Event | None = None

    def wait(self) -> Tensor:
        """Return the tensor once the device has computed it."""
        if self.ready is None:
            return self.tensor
        if self.tensor.is_cuda:  # stays there: the caller's stream waits, not the caller
            torch.cuda.current_stream(self.tensor.device).wait_event(self.ready)
            self.tensor.record_stream(torch.cuda.current_stream(self.tensor.device))
        else:
            self.ready.synchronize()
        return self.tensor


class Executor:
    """A runner of a network's batches, in threads of its own."""

    def __init__(self, network: Network, device: torch.device, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise InputError(f"threads must be at least 1, not {threads}.")
        self.network, self.device, self.threads = network, device, threads
        self.num_workers = (threads or torch.get_num_threads()) if device.type == "cpu" else 1
        # a GPU waits for the tokenizer, whose time is spent outside the interpreter lock for the most part
        self.num_tokenizers = min(8, max(1, (os.cpu_count() or 2) // 2)) if device.type == "cuda" else 1
        self.limit: int | None = None  # tokens a batch, found when memory ran out and remembered
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        # windows are tokenized between the batches that the device computes meanwhile
        self.text_stream = None if self.stream is None else torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
        own = network.encoder.own
        self.graphs = Graphs(network, own) if self.stream is not None and own is not None else None
        self.num_multiplied = network.num_multiplied
        self._budget: int | None = None
        self._num_seen = 0
        self._locks: dict[int, threading.Lock] = {}
        self._pools: dict[bool, ThreadPoolExecutor] = {}
        self._pid = os.getpid()

    @property
    def num_sharing(self) -> int:
        """The number of cores that share the work of this thread."""
        return 1 if is_on_one_core() else self.num_workers

    def budget(self, num_tokens: int, asked: int | None = None) -> Budget:
        """Return the tokens of a batch: those asked for or the best number for the device, within its memory."""
        if asked is not None and asked < 1:
            raise InputError(f"batch_tokens must be at least 1, not {asked}.")
        shared = max(-(-num_tokens // self.num_sharing), MIN_TOKENS_TO_SHARE)  # so that no core is left without a batch
        # on one core somebody else decides how much there is at a time, and others are not to wait for a measurement
        best = self._best_tokens(num_tokens) if self.num_sharing == self.num_workers else BUDGETS[self.device.type]
        wanted = min(best, shared) if asked is None else asked
        tokens = wanted if self.limit is None else min(wanted, self.limit)
        if asked is not None or self.limit is not None:
            return Budget(tokens)
        if self.device.type == "cuda" and num_tokens:  # a small batch behind full ones takes as long to launch
            tokens = -(-num_tokens // max(1, int(num_tokens / best + MAX_SPREAD_SHARE)))
        return Budget(tokens, self.num_sharing)

    def _best_tokens(self, num_tokens: int) -> int:
        """Return the best number of tokens in a batch; measured here once there is enough work."""
        usual, candidates = BUDGETS[self.device.type], CANDIDATE_BUDGETS.get(self.device.type)
        encoder = self.network.encoder.own
        if candidates is None or encoder is None or not tuning.is_on():
            return usual
        self._num_seen += num_tokens
        if self._budget is None and self._num_seen >= MIN_BATCHES_TO_TUNE * usual:
            key = tuning.key_of(encoder, self.device, self.num_workers, tuning.arithmetic_of(self.network))
            self._budget = tuning.find(key, candidates, partial(self._rate, encoder))
        return self._budget or usual

    def _rate(self, encoder: Encoder, budget: int) -> float:
        """Return the tokens per second with batches of `budget` tokens, on one core or the GPU."""
        batch = sample(encoder, [SAMPLE_TOKENS] * (budget // SAMPLE_TOKENS))
        return self._pool(is_one_of_many=True).submit(self._measure, batch).result()

    def _measure(self, batch: Packed) -> float:
        """Time a batch in the thread that computes, so that waiting for other batches does not count."""
        if self.stream is not None:
            self.stream.synchronize()
        # on a core the work of others does not count
        clock = time.thread_time if self.stream is None else time.perf_counter
        start = clock()
        self._run(batch, self.network, unchanged, keeps_device=False).wait()
        return batch.num_tokens / max(clock() - start, 1e-9)

    @contextmanager
    def tokenizing(self) -> Iterator[None]:
        """Compute on the device beside the network; what is computed is there at the end of the block."""
        with torch.inference_mode():
            if self.text_stream is None:
                yield
            else:
                with torch.cuda.device(self.device), torch.cuda.stream(self.text_stream):
                    yield
                    self.text_stream.synchronize()

    def lay_out(self, batch: Packed) -> Packed:
        """Lay out the batch in the form that reaches the device fastest; in any thread."""
        if self.device.type != "cuda":
            return batch
        return batch.pinned() if self.graphs is None else self.graphs.lay_out(batch)

    def results(
        self, batches: Iterable[Batch], forward: Forward, finish: Finish, keeps_device: bool = False
    ) -> Generator[tuple[Batch, Tensor], None, None]:
        """Yield every batch with its results, in order, while the next few are computed.

        Results come to the host unless they are to stay on the device. A GPU is then only waited for until everything
        is launched: a thread that makes the next batches meanwhile would take the interpreter for 5 ms at a time.
        """
        waiting: deque[tuple[Batch, Future[Result]]] = deque()
        queued: deque[torch.cuda.Event] = deque()
        is_queued = keeps_device and self.stream is not None
        max_waiting = 0 if is_queued else self.num_workers + MAX_READY_BATCHES

        def next_one() -> tuple[Batch, Tensor]:
            batch, future = waiting.popleft()
            result = future.result()
            if is_queued and result.ready is not None:
                queued.append(result.ready)
                if len(queued) > MAX_QUEUED_BATCHES:
                    queued.popleft().synchronize()
            return batch, result.wait()

        try:
            for batch in batches:
                check_stopped()
                waiting.append((batch, self.submit(batch, forward, finish, keeps_device)))
                if len(waiting) > max_waiting:
                    yield next_one()
            while waiting:
                check_stopped()
                yield next_one()
        finally:  # an error or Ctrl-C: drop what has not begun, before threads that may wait behind it are ended
            for _, future in waiting:
                future.cancel()

    def submit(
        self, batch: Batch, forward: Forward, finish: Finish = unchanged, keeps_device: bool = False
    ) -> "Future[Result]":
        """Compute a batch in a thread of the executor's, on all cores or beside others on one."""
        num_multiplications = batch.packed.num_tokens * self.num_multiplied
        is_small = num_multiplications < MIN_MULTIPLICATIONS_FOR_ALL_CORES
        pool = self._pool(batch.is_one_of_many or self.num_sharing == 1 or is_small)
        return pool.submit(self._run, batch.packed, forward, finish, keeps_device)

    def call(self, function: Callable[[], Tensor]) -> Tensor:
        """Compute something else on the host, in a thread of the executor: after a fork the caller's could hang."""
        return self._pool(self.num_sharing == 1).submit(torch.inference_mode()(function)).result()

    def _pool(self, is_one_of_many: bool) -> ThreadPoolExecutor:
        is_narrow = is_one_of_many and self.num_workers > 1
        with lock_of(self._locks):
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

    def _run(self, batch: Packed, forward: Forward, finish: Finish, keeps_device: bool) -> Result:
        with torch.inference_mode():
            if self.stream is None:
                tensor = finish(self._compute(batch, forward))
                return Result(tensor if keeps_device else tensor.cpu())
            with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
                batch.record(self.stream)
                tensor = finish(self._compute(batch, forward))
                if not keeps_device:
                    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
                    tensor = host.copy_(tensor, non_blocking=True)
                elif batch.laid_out is not None:
                    tensor = tensor.clone()  # the next replay of the graph overwrites its results
                ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
                ready.record(self.stream)
            return Result(tensor, ready)

    def _compute(self, batch: Packed, forward: Forward) -> Tensor:
        try:
            if batch.laid_out is not None and self.graphs is not None and forward is self.network:
                return self.graphs(batch, forward)
            return forward(batch.to(self.device))
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
