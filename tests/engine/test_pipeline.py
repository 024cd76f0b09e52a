"""Batches of work: every row once, in any order of batches, and only as much read ahead as is needed."""

import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from munjang.engine.executor import Executor
from munjang.engine.pipeline import WAITING, Job, Work, ahead, batches, compute
from munjang.text.packing import Packed
from munjang.text.tokenizer import Tokens
from munjang.types import Ints


def work_of(lengths: list[int], first_row: int = 0) -> Work:
    """Texts whose ids all are their own row."""
    rows = np.arange(first_row, first_row + len(lengths))
    return Work(rows, Tokens(np.repeat(rows, lengths).astype(np.int32), np.array(lengths, np.int64)))


def jobs_of(works: Iterable[Work]) -> Iterator[Job]:
    return (partial(lambda work: work, work) for work in works)


def mean_id(batch: Packed) -> Tensor:
    parts = torch.split(batch.ids_T.float(), batch.lengths.tolist())
    return torch.stack([part.mean() for part in parts])


def collect(results: Iterator[tuple[Ints, Packed, Tensor]], num_rows: int) -> list[float]:
    out = [-1.0] * num_rows
    for rows, _, values in results:
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            assert out[row] == -1.0  # no row twice
            out[row] = value
    return out


def test_batches_carry_types_skips_and_rows() -> None:
    lengths = np.array([1, 3, 2], np.int64)
    tokens = Tokens(np.array([10, 20, 21, 22, 30, 31], np.int32), lengths, np.array([0, 0, 1, 1, 0, 1], np.int32))
    work = Work(np.array([7, 8, 9]), tokens, np.array([1, 2, 3]))
    (first, one), (second, two) = batches(work, 3, None)
    assert (first.tolist(), second.tolist()) == ([8], [9, 7])
    assert one.ids_T.tolist() == [20, 21, 22]
    assert two.ids_T.tolist() == [30, 31, 10]
    assert one.types_T is not None
    assert one.types_T.tolist() == [0, 1, 1]
    assert two.types_T is not None
    assert two.types_T.tolist() == [0, 1, 0]
    assert [batch.skip.tolist() for batch in (one, two) if batch.skip is not None] == [[2], [3, 1]]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("budget", [1, 5, 40, None])
def test_every_row_has_its_own_result(threads: int, budget: int | None) -> None:
    lengths = np.random.default_rng(0).integers(1, 9, 50).tolist()
    stream = [work_of(lengths[:20]), work_of([]), work_of(lengths[20:], 20)]
    executor = Executor(nn.Identity(), torch.device("cpu"), threads)
    assert collect(compute(executor, jobs_of(stream), mean_id, budget), 50) == list(range(50))


def test_slots_are_tokens() -> None:
    lengths = np.random.default_rng(1).integers(0, 9, 30).tolist()
    slots = sum(batch.num_tokens for _, batch in batches(work_of(lengths), 16, None))
    assert slots == sum(lengths)


def test_only_so_much_is_read_ahead() -> None:
    read: list[int] = []

    def stream() -> Iterator[Work]:
        for number in range(100):
            read.append(number)
            yield work_of([4], number)

    executor = Executor(nn.Identity(), torch.device("cpu"), 2)
    results = compute(executor, jobs_of(stream()), mean_id, 4)
    assert read == []
    next(results)
    assert len(read) <= executor.num_workers + WAITING + 1
    results.close()


def test_what_has_not_begun_is_dropped_on_an_error() -> None:
    begun: list[int] = []

    def slow(batch: Packed) -> Tensor:
        begun.append(1)
        time.sleep(0.1)
        return mean_id(batch)

    def stream() -> Iterator[Work]:
        for number in range(4):
            yield work_of([4], number)
        raise OSError("no more")

    executor = Executor(nn.Identity(), torch.device("cpu"), 1)
    with pytest.raises(OSError, match="no more"):
        list(compute(executor, jobs_of(stream()), slow, 4))
    time.sleep(0.25)
    assert len(begun) < 4


def test_an_error_of_one_batch_ends_the_rest() -> None:
    def fails_on_three(batch: Packed) -> Tensor:
        if 3 in batch.ids_T:
            raise RuntimeError("three")
        return mean_id(batch)

    executor = Executor(nn.Identity(), torch.device("cpu"), 2)
    with pytest.raises(RuntimeError, match="three"):
        list(compute(executor, jobs_of([work_of([4] * 9)]), fails_on_three, 4))
    assert collect(compute(executor, jobs_of([work_of([4] * 9)]), mean_id, 4), 9) == list(range(9))


def test_an_error_of_tokenizing_does_not_wait_for_the_texts_before_it() -> None:
    begun: list[int] = []

    def slow(batch: Packed) -> Tensor:
        begun.append(1)
        time.sleep(0.01)
        return mean_id(batch)

    def fails(name: str) -> Work:
        raise OSError(name)

    jobs = [lambda: work_of([4] * 500), lambda: fails("the second"), lambda: fails("the third")]
    executor = Executor(nn.Identity(), torch.device("cpu"), 2)
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
    executor = Executor(nn.Identity(), torch.device("cpu"), 1)
    results = compute(executor, jobs_of(work_of([4], row) for row in range(500)), mean_id, 4, threads=2)
    next(results)
    assert any(thread.name.startswith("munjang-ahead") for thread in set(threading.enumerate()) - before)
    results.close()
    assert not any(thread.name.startswith("munjang-ahead") for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [1, 4])
def test_tokenized_ahead_every_row_has_its_own_result(threads: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 9, 60).tolist()
    works = [work_of(lengths[start : start + 7], start) for start in range(0, 60, 7)]
    executor = Executor(nn.Identity(), torch.device("cpu"), 2)
    assert collect(compute(executor, jobs_of(works), mean_id, 12, threads=threads), 60) == list(range(60))
