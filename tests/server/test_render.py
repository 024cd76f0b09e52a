"""Vectors as JSON: exact, and the same in a thread."""

import asyncio
import base64
import json

import numpy as np
import pytest

pytest.importorskip("fastapi")
from munjang.server.render import MIN_THREAD_NUMBERS, listed, rendered


@pytest.mark.parametrize("num_rows", [0, 1, MIN_THREAD_NUMBERS // 8 + 1])
def test_rows_come_back_bit_for_bit(num_rows: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(num_rows, 8)).astype(np.float32)
    numbers = json.loads(listed(asyncio.run(rendered(vectors))))
    np.testing.assert_array_equal(np.array(numbers, np.float32).reshape(-1, 8), vectors)
    texts = json.loads(listed(asyncio.run(rendered(vectors, is_base64=True))))
    decoded = [np.frombuffer(base64.b64decode(text), "<f4") for text in texts]
    np.testing.assert_array_equal(np.array(decoded, np.float32).reshape(-1, 8), vectors)
