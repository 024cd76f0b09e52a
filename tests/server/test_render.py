"""Answers as JSON: exact, and the same in a thread."""

import asyncio
import base64
import json
import threading

import numpy as np
import pytest

pytest.importorskip("fastapi")
from munjang.server.render import MIN_THREAD_NUMBERS, as_base64, as_numbers, listed, lists_of_vectors, written
from munjang.server.steps import Steps, finished
from munjang.server.turns import Turns


def through_a_lane(steps: Steps[bytes], num_numbers: int) -> bytes:
    async def scene() -> bytes:
        lane = Turns("answers")
        content = await written(lane, steps, num_numbers)
        lane.close()
        return content

    return asyncio.run(scene())


@pytest.mark.parametrize("num_rows", [0, 1, MIN_THREAD_NUMBERS // 8 + 1])
def test_rows_come_back_bit_for_bit(num_rows: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(num_rows, 8)).astype(np.float32)
    numbers = json.loads(through_a_lane(listed(vectors, as_numbers), vectors.size))
    np.testing.assert_array_equal(np.array(numbers, np.float32).reshape(-1, 8), vectors)
    texts = json.loads(through_a_lane(listed(vectors, as_base64), vectors.size))
    decoded = [np.frombuffer(base64.b64decode(text), "<f4") for text in texts]
    np.testing.assert_array_equal(np.array(decoded, np.float32).reshape(-1, 8), vectors)
    tokens = [vectors[:3], vectors[3:]]
    assert json.loads(finished(lists_of_vectors(tokens))) == [each.tolist() for each in tokens]


def test_a_large_answer_is_written_elsewhere() -> None:
    """Not in the thread of the event loop, and never more than one vector at a step."""
    threads = set[int]()

    def noted(row: np.ndarray) -> bytes:
        threads.add(threading.get_ident())
        return as_numbers(row)

    rows = np.zeros((100, 384), np.float32)
    through_a_lane(listed(rows, noted), rows.size)
    assert threading.get_ident() not in threads
    assert sum(1 for _ in listed(rows, noted)) == len(rows)
