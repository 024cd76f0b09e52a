"""Tokenizing in other processes: the same ids, and no process or text lost when one dies."""

import gc
import os
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from tokenizers import Tokenizer as RustTokenizer

from munjang.text.lookup.lookup import SpanLookup, body_tokenizer
from munjang.text.processes import TokenizerProcesses
from munjang.text.tokenizer import MIN_TEXTS_FOR_PROCESSES, Tokenizer
from tests.models import make_tokenizer
from tests.texts import HOSTILE, mixed

TEXTS = ["", "a\ud800b", *HOSTILE, *mixed(200, longest=20)]


@pytest.fixture(scope="module")
def here() -> SpanLookup:
    lookup = body_tokenizer(make_tokenizer("wordpiece"))
    assert isinstance(lookup, SpanLookup)
    return lookup


@pytest.fixture
def processes(here: SpanLookup) -> Iterator[TokenizerProcesses]:
    found = TokenizerProcesses(here.tokenizer, 2)
    yield found
    found.end()


def same(first: object, second: object) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))  # type: ignore[call-overload]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_same_ids_from_several_threads(here: SpanLookup, processes: TokenizerProcesses) -> None:
    expected = here(TEXTS)
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(processes(TEXTS, here))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [same(one, expected) for one in found] == [True] * 6
    assert same(processes([], here), here([]))


def test_one_that_dies_costs_no_text(here: SpanLookup, processes: TokenizerProcesses) -> None:
    expected = here(TEXTS)
    processes(TEXTS, here)
    processes.all[0].child.kill()
    assert [same(processes(TEXTS, here), expected) for _ in range(4)] == [True] * 4
    assert processes.num_failed == 1
    assert processes.is_usable()
    processes.all[1].child.kill()
    assert [same(processes(TEXTS, here), expected) for _ in range(4)] == [True] * 4
    assert not processes.is_usable()


def test_they_end_with_their_owner(here: SpanLookup) -> None:
    processes = TokenizerProcesses(here.tokenizer, 2)
    processes(TEXTS, here)
    children = [process.child.pid for process in processes.all]
    assert all(map(is_running, children))
    del processes
    gc.collect()
    deadline = time.monotonic() + 10
    while any(map(is_running, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, children))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_leaves_them_alone(here: SpanLookup, processes: TokenizerProcesses) -> None:
    child = os.fork()
    if not child:
        os._exit(0 if not processes.is_usable() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert same(processes(TEXTS, here), here(TEXTS))


def test_a_tokenizer_sends_many_texts_there(here: SpanLookup) -> None:
    tokenizer, alone = (Tokenizer(RustTokenizer.from_str(here.tokenizer.to_str())) for _ in range(2))
    tokenizer.start_processes(1)
    assert tokenizer.processes is not None
    many = (TEXTS * (MIN_TEXTS_FOR_PROCESSES // len(TEXTS) + 1))[:MIN_TEXTS_FOR_PROCESSES]
    assert np.array_equal(tokenizer(many).ids, alone(many).ids)
    assert isinstance(tokenizer.tokenize_bodies, SpanLookup)
    assert tokenizer.tokenize_bodies.table.num_entries == 0  # nothing was learned here
    assert np.array_equal(tokenizer(TEXTS).ids, alone(TEXTS).ids)
    assert tokenizer.tokenize_bodies.table.num_entries > 0
    tokenizer.processes.end()
