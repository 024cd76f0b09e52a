"""Windows tokenized ahead and computed: every row once, only as much read ahead as is needed, errors at once."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from munjang.engine.ahead import ahead, items_ahead
from munjang.engine.pack import Batch, pack_window
from munjang.engine.run import MAX_READY_BATCHES, Executor, Forward, unchanged
from munjang.engine.tokenize import Window
from munjang.text.packing import Packed
from munjang.text.tokenizer import Tokens
from tests.engine.networks import CPU, mean_of_ids

Job = Callable[[], Window]


def compute(
    executor: Executor, jobs: Iterable[Job], forward: Forward, budget: int | None = None, threads: int = 0
) -> Iterator[tuple[Batch, Tensor]]:
    """The engine's loop, over windows that are there already."""

    def pack(job: Job) -> list[Batch]:
        window = job()
        return pack_window(window, executor.budget(len(window.tokens.ids), budget))

    batches = items_ahead((partial(pack, job) for job in jobs), threads)
    with closing(batches), closing(executor.results(batches, forward, unchanged)) as results:
        yield from results


def window_of(lengths: list[int], first_row: int = 0) -> Window:
    """Texts whose ids all are their own row."""
    rows = np.arange(first_row, first_row + len(lengths))
    return Window(rows, Tokens(np.repeat(rows, lengths).astype(np.int32), np.array(lengths, np.int64)))


def jobs_of(windows: Iterable[Window]) -> Iterator[Job]:
    return (partial(lambda window: window, window) for window in windows)


def mean_id(batch: Packed) -> Tensor:
    parts = torch.split(batch.ids_T.float(), batch.lengths.tolist())
    return torch.stack([part.mean() for part in parts])


def collect(results: Iterator[tuple[Batch, Tensor]], num_rows: int) -> list[float]:
    out = [-1.0] * num_rows
    for batch, values in results:
        for row, value in zip(batch.rows_B.tolist(), values.tolist(), strict=True):
            assert out[row] == -1.0  # no row twice
            out[row] = value
    return out


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("budget", [1, 5, 40, None])
def test_every_row_has_its_own_result(threads: int, budget: int | None) -> None:
    lengths = np.random.default_rng(0).integers(1, 9, 50).tolist()
    stream = [window_of(lengths[:20]), window_of([]), window_of(lengths[20:], 20)]
    executor = Executor(mean_of_ids(), CPU, threads)
    assert collect(compute(executor, jobs_of(stream), mean_id, budget), 50) == list(range(50))


def test_only_so_much_is_read_ahead() -> None:
    read: list[int] = []

    def stream() -> Iterator[Window]:
        for number in range(100):
            read.append(number)
            yield window_of([4], number)

    executor = Executor(mean_of_ids(), CPU, 2)
    results = compute(executor, jobs_of(stream()), mean_id, 4)
    assert read == []
    next(results)
    assert len(read) <= executor.num_workers + MAX_READY_BATCHES + 1
    results.close()


def test_what_has_not_begun_is_dropped_on_an_error() -> None:
    begun: list[int] = []

    def slow(batch: Packed) -> Tensor:
        begun.append(1)
        time.sleep(0.1)
        return mean_id(batch)

    def stream() -> Iterator[Window]:
        for number in range(4):
            yield window_of([4], number)
        raise OSError("no more")

    executor = Executor(mean_of_ids(), CPU, 1)
    with pytest.raises(OSError, match="no more"):
        list(compute(executor, jobs_of(stream()), slow, 4))
    time.sleep(0.25)
    assert len(begun) < 4


def test_an_error_of_one_batch_ends_the_rest() -> None:
    def fails_on_three(batch: Packed) -> Tensor:
        if 3 in batch.ids_T:
            raise RuntimeError("three")
        return mean_id(batch)

    executor = Executor(mean_of_ids(), CPU, 2)
    with pytest.raises(RuntimeError, match="three"):
        list(compute(executor, jobs_of([window_of([4] * 9)]), fails_on_three, 4))
    assert collect(compute(executor, jobs_of([window_of([4] * 9)]), mean_id, 4), 9) == list(range(9))


def test_an_error_of_tokenizing_does_not_wait_for_the_texts_before_it() -> None:
    begun: list[int] = []

    def slow(batch: Packed) -> Tensor:
        begun.append(1)
        time.sleep(0.01)
        return mean_id(batch)

    def fails(name: str) -> Window:
        raise OSError(name)

    jobs = [lambda: window_of([4] * 500), lambda: fails("the second"), lambda: fails("the third")]
    executor = Executor(mean_of_ids(), CPU, 2)
    with pytest.raises(OSError, match="the second"):
        list(compute(executor, jobs, slow, 4, threads=1))
    assert len(begun) < 100


# Jobs done ahead


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_results_come_in_order_and_not_too_many_ahead(threads: int) -> None:
    begun: list[int] = []

    def job(number: int) -> int:
        begun.append(number)
        time.sleep(0.01 * (number % 3))
        return number

    results = ahead((partial(job, number) for number in range(20)), threads)
    assert next(results) == 0
    assert len(begun) <= threads + 2
    assert list(results) == list(range(1, 20))


@pytest.mark.parametrize("threads", [0, 2])
def test_an_error_ends_it_and_leaves_no_thread(threads: int) -> None:
    done: list[int] = []

    def job(number: int) -> int:
        if number == 3:
            raise ValueError("the third")
        done.append(number)
        return number

    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="the third"):
        list(ahead((partial(job, number) for number in range(1000)), threads))
    assert len(done) < 20
    assert set(threading.enumerate()) <= before


def test_a_caller_that_stops_early_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    executor = Executor(mean_of_ids(), CPU, 1)
    results = compute(executor, jobs_of(window_of([4], row) for row in range(500)), mean_id, 4, threads=2)
    next(results)
    assert any(thread.name.startswith("munjang-ahead") for thread in set(threading.enumerate()) - before)
    results.close()
    assert not any(thread.name.startswith("munjang-ahead") for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [1, 4])
def test_tokenized_ahead_every_row_has_its_own_result(threads: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 9, 60).tolist()
    windows = [window_of(lengths[start : start + 7], start) for start in range(0, 60, 7)]
    executor = Executor(mean_of_ids(), CPU, 2)
    assert collect(compute(executor, jobs_of(windows), mean_id, 12, threads=threads), 60) == list(range(60))
