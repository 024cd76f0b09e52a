"""The executor: the caller's settings are left alone, forks and threads work, devices and budgets are chosen."""

import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from munjang import BiEncoder, CrossEncoder
from munjang.engine.devices import pick_device, pick_dtype
from munjang.engine.run import MIN_TOKENS_TO_SHARE, Executor
from munjang.engine.tokenize import Texts
from munjang.errors import InputError, MunjangError
from munjang.nn import threads as torch_threads
from munjang.progress import Progress
from munjang.text.packing import Packed
from tests.engine.networks import CPU, batch_of, first_ids, mean_of_ids, submit
from tests.texts import mixed

TEXTS = mixed(60, longest=25)


def ours() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("munjang")]


def threads_seen_by_a_new_thread() -> int:
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return seen[0]


# The caller's settings


@pytest.mark.parametrize("threads", [None, 1, 2, 3])
@pytest.mark.parametrize("own", [1, 2, 4])
def test_number_of_threads_is_the_callers(tiny_bert: Path, threads: int | None, own: int) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(own)
        model = BiEncoder.load(tiny_bert, threads=threads)
        model.encode(TEXTS)
        model.encode(TEXTS, batch_tokens=64)  # many batches: the other pool
        assert torch.get_num_threads() == own
        assert threads_seen_by_a_new_thread() == own
        assert model._engine.executor.num_workers == (threads or own)
    finally:
        torch.set_num_threads(before)


def test_workers_use_what_was_asked_for() -> None:
    seen: list[tuple[str, int]] = []

    def forward(batch: Packed) -> Tensor:
        seen.append((threading.current_thread().name, torch.get_num_threads()))
        time.sleep(0.02)
        return first_ids(batch)

    executor = Executor(mean_of_ids(), CPU, threads=3)
    executor.num_multiplied = 10**9  # as if the network were large: a lone batch is worth all threads
    submit(executor, batch_of([2]), forward).result()
    for future in [submit(executor, batch_of([2]), forward, is_one_of_many=True) for _ in range(9)]:
        future.result()
    assert {threads for _, threads in seen[:1]} == {3}
    assert {threads for _, threads in seen[1:]} == {1}
    assert len({name for name, _ in seen[1:]}) == 3  # one batch a core
    executor.num_multiplied = 1
    submit(executor, batch_of([2]), forward).result()
    assert seen[-1][1] == 1  # too little work to share


@pytest.mark.parametrize("is_enabled", [True, False])
def test_grad_mode_is_the_callers(tiny_bert: Path, is_enabled: bool) -> None:
    model = BiEncoder.load(tiny_bert)
    with torch.set_grad_enabled(is_enabled):
        found = model.encode(TEXTS, output="torch")
        assert torch.is_grad_enabled() is is_enabled
        assert not torch.is_inference_mode_enabled()
        assert not found.requires_grad


def test_the_network_runs_without_gradients() -> None:
    executor, weight = Executor(mean_of_ids(), CPU), torch.ones(1, requires_grad=True)
    found = submit(executor, batch_of([2]), lambda batch: first_ids(batch) * weight).result().wait()
    assert not found.requires_grad
    assert not executor.call(lambda: weight * 2).requires_grad


# Threads


@pytest.mark.parametrize("threads", [1, 2])
def test_ten_threads_encode_at_once(tiny_bert: Path, threads: int) -> None:
    model = BiEncoder.load(tiny_bert, threads=threads)
    expected = model.encode(TEXTS)
    wrong: list[float] = []

    def work(number: int) -> None:
        for turn in range(4):
            order = np.random.default_rng(number * 10 + turn).permutation(len(TEXTS))
            found = model.encode([TEXTS[row] for row in order], batch_tokens=[None, 64, 1000, 5000][turn])
            if (worst := np.abs(found - expected[order]).max()) > 2e-6:
                wrong.append(worst)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not any(worker.is_alive() for worker in workers)
    assert wrong == []


def test_a_models_threads_end_with_it(tiny_bert: Path) -> None:
    before = set(ours())  # those of an earlier test's model may be ending
    model = BiEncoder.load(tiny_bert, threads=2)
    model.encode(TEXTS)
    model.encode(TEXTS, batch_tokens=64)
    started = set(ours()) - before
    assert started
    del model
    gc.collect()
    for thread in started:
        thread.join(10)
        assert not thread.is_alive()


def test_an_error_in_the_network_reaches_the_caller(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = BiEncoder.load(tiny_bert, threads=2)
    expected = model.encode(TEXTS)

    def broken(batch: Packed) -> Tensor:
        raise RuntimeError("a cosmic ray")

    with monkeypatch.context() as patch:
        patch.setattr(model.network.encoder, "forward", broken)
        with pytest.raises(RuntimeError, match="a cosmic ray"):
            model.encode(TEXTS, batch_tokens=64)
    assert np.array_equal(model.encode(TEXTS), expected)


def test_an_error_that_is_held_holds_no_thread(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = BiEncoder.load(tiny_bert, threads=2)
    monkeypatch.setattr(Texts, "window", 8)

    def broken(bar: Progress, n: int) -> None:
        raise OSError("no terminal")

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", broken)
        with pytest.raises(OSError, match="no terminal") as held:
            model.encode(mixed(200, longest=20))
    assert held.traceback
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("munjang-ahead")]


def test_ctrl_c_in_the_middle(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = BiEncoder.load(tiny_bert, threads=2)
    expected = model.encode(TEXTS)
    forward, begun = model.network.encoder.forward, []

    def slow(batch: Packed) -> Any:
        begun.append(batch.num_tokens)
        time.sleep(0.05)
        return forward(batch)

    with monkeypatch.context() as patch:
        patch.setattr(model.network.encoder, "forward", slow)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            model.encode(mixed(2000), batch_tokens=64)
        stopped = len(begun)
        time.sleep(0.4)
        assert len(begun) <= stopped + 2  # what had begun; the rest was dropped
    assert np.array_equal(model.encode(TEXTS), expected)


# Forks and other processes


def in_child(work: Callable[[], bool]) -> int:
    """The exit code of a forked child that does the work: 0 if it was right, 1 if not, -9 if it hung."""
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if work() else 1)
        except BaseException:  # a child must not return into pytest
            os._exit(2)
    watch = threading.Timer(60, os.kill, (pid, signal.SIGKILL))
    watch.start()
    status = os.waitpid(pid, 0)[1]
    watch.cancel()
    return os.waitstatus_to_exitcode(status)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
class TestFork:
    @pytest.mark.parametrize("threads", [None, 1, 2])
    def test_a_child_encodes_after_its_parent(self, tiny_bert: Path, threads: int | None) -> None:
        model = BiEncoder.load(tiny_bert, threads=threads)
        one, many = model.encode(TEXTS), model.encode(TEXTS, batch_tokens=64)

        def work() -> bool:
            new = [*TEXTS, "words that only the child has seen"]
            return (
                np.allclose(model.encode(new)[:-1], one, atol=2e-6)
                and np.allclose(model.encode(new, batch_tokens=64)[:-1], many, atol=2e-6)
                and np.allclose(model.encode(TEXTS, output="torch").numpy(), one, atol=2e-6)
            )

        assert in_child(work) == 0
        assert in_child(lambda: in_child(work) == 0) == 0  # a child of a child
        assert np.allclose(model.encode(TEXTS), one, atol=2e-6)  # and the parent goes on

    def test_a_child_does_not_wait_for_its_parents_locks(self, tiny_bert: Path) -> None:
        model = BiEncoder.load(tiny_bert)
        expected = model.encode(TEXTS)
        engine = model._engine.executor
        held = [torch_threads.lock_of(engine._locks), torch_threads.lock_of(torch_threads._setting)]
        for lock in held:
            lock.acquire()
        try:
            assert in_child(lambda: np.allclose(model.encode(TEXTS), expected, atol=2e-6)) == 0
        finally:
            for lock in held:
                lock.release()

    def test_a_fork_while_other_threads_encode(self, tiny_bert: Path) -> None:
        model = BiEncoder.load(tiny_bert)
        expected, stop = model.encode(TEXTS), threading.Event()

        def work() -> None:
            count = 0
            while not stop.is_set():
                model.encode([*TEXTS, f"new{count} word{count}"])
                count += 1

        busy = [threading.Thread(target=work) for _ in range(3)]
        for thread in busy:
            thread.start()
        try:
            for _ in range(5):
                assert in_child(lambda: np.allclose(model.encode(TEXTS), expected, atol=2e-6)) == 0
        finally:
            stop.set()
            for thread in busy:
                thread.join()

    def test_a_cross_encoder_scores_many_pairs_in_a_child(self, make: Callable[..., Path]) -> None:
        """So many that torch would share the sigmoid among threads, which the fork left behind."""
        scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1))
        pairs = [("a", "b")] * 100_000
        expected = scorer.predict(pairs)
        assert in_child(lambda: np.allclose(scorer.predict(pairs), expected)) == 0

    def test_a_child_loads_saves_and_compares(self, tiny_bert: Path, minilm: Path, tmp_path: Path) -> None:
        """The parent's own thread has used torch's workers, which the child's copy of it would wait for."""
        torch.randn(400, 400) @ torch.randn(400, 400)
        loaded = BiEncoder.load(minilm)

        def work() -> bool:
            model = BiEncoder.load(minilm)
            model.save(tmp_path / "saved")
            return model.fingerprint == loaded.fingerprint and CrossEncoder.create(minilm).num_labels == 1

        assert in_child(work) == 0

    def test_multiprocessing_by_fork(self, tiny_bert: Path) -> None:
        model = BiEncoder.load(tiny_bert)
        expected = model.encode(TEXTS)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            parts = pool.map_async(model.encode, [TEXTS[:30], TEXTS[30:]]).get(60)
        np.testing.assert_allclose(np.concatenate(parts), expected, atol=2e-6)


def test_multiprocessing_by_spawn(tiny_bert: Path) -> None:
    model = BiEncoder.load(tiny_bert, threads=1)
    expected = model.encode(TEXTS)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply_async(model.encode, (TEXTS,)).get(120)
    np.testing.assert_allclose(found, expected, atol=2e-6)


def test_cross_encoders_pickle_too(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=1), threads=1)
    again = pickle.loads(pickle.dumps(scorer))
    assert again.predict(("a", "b")) == pytest.approx(scorer.predict(("a", "b")), abs=1e-6)
    fresh = CrossEncoder.create(make("bert"))
    with pytest.raises(MunjangError, match="save it and load it"):
        pickle.dumps(fresh)


# Choices


def test_budgets() -> None:
    executor = Executor(mean_of_ids(), CPU, threads=4)
    assert executor.budget(100).tokens == MIN_TOKENS_TO_SHARE
    assert executor.budget(4 * 1000).tokens == 1000  # a batch for every core
    assert executor.budget(10**6).tokens == 2048
    assert executor.budget(10**6, asked=7).tokens == 7
    with pytest.raises(InputError, match="batch_tokens must be at least 1, not -3"):
        executor.budget(10, asked=-3)
    with pytest.raises(InputError, match="threads must be at least 1, not 0"):
        Executor(mean_of_ids(), CPU, threads=0)


def test_devices_and_dtypes() -> None:
    assert pick_device("cpu") == pick_device(CPU) == CPU
    assert pick_device(None).type in ("cpu", "cuda", "mps")
    assert pick_dtype(None, CPU) == torch.float32
    assert pick_dtype("bfloat16", CPU) == torch.bfloat16
    for device in ("gpu", "cpuu", "xla"):
        with pytest.raises(InputError, match=f"Unknown device '{device}'; choose from cpu, cuda, mps"):
            pick_device(device)
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="cuda is not here; torch sees 0 CUDA devices"):
            pick_device("cuda")
    if not torch.backends.mps.is_available():
        with pytest.raises(InputError, match="mps is not here"):
            pick_device("mps")
    with pytest.raises(InputError, match="Unknown dtype 'fp32'"):
        pick_dtype("fp32", CPU)


# One core


def test_on_one_core_nothing_is_divided_and_others_are_not_touched() -> None:
    """Enough tokens for both cores stay one batch of a narrow thread; another thread still has all cores."""
    executor = Executor(mean_of_ids(), CPU, threads=2)
    seen: list[int] = []

    def network(batch: Packed) -> Tensor:
        seen.append(torch.get_num_threads())
        return first_ids(batch)

    batch, elsewhere = batch_of([MIN_TOKENS_TO_SHARE] * 3), list[int]()
    executor.num_multiplied = 10**9  # no lone batch is small
    assert executor.budget(3 * MIN_TOKENS_TO_SHARE).tokens < 3 * MIN_TOKENS_TO_SHARE
    with torch_threads.on_one_core():
        assert executor.budget(3 * MIN_TOKENS_TO_SHARE).tokens == 3 * MIN_TOKENS_TO_SHARE
        submit(executor, batch, network).result()
        thread = threading.Thread(target=lambda: elsewhere.append(executor.num_sharing))
        thread.start()
        thread.join()
    submit(executor, batch, network).result()
    assert seen == [1, 2]
    assert elsewhere == [2]
    assert executor.num_sharing == 2
