"""Vectors as JSON, row by row; many of them in a thread, so that the event loop stays free."""

import asyncio
import base64

import numpy as np
from pydantic_core import to_json

from munjang.types import Floats

MIN_THREAD_NUMBERS = 16_384  # so many take the event loop a millisecond or two


async def rendered(vectors_BD: Floats, is_base64: bool = False) -> list[bytes]:
    """Encode every row as JSON: a list of numbers, or its little-endian float32 in base64."""
    if vectors_BD.size < MIN_THREAD_NUMBERS:
        return rows_of(vectors_BD, is_base64)
    return await asyncio.to_thread(rows_of, vectors_BD, is_base64)


def rows_of(vectors_BD: Floats, is_base64: bool) -> list[bytes]:
    """Encode in this thread. Each row is a call of its own: between two of them other threads get their turn."""
    if is_base64:
        return [b'"' + base64.b64encode(row.tobytes()) + b'"' for row in np.asarray(vectors_BD, "<f4")]
    return [to_json(row.tolist()) for row in vectors_BD]


def listed(rows: list[bytes]) -> bytes:
    """Join values that are JSON already to a list."""
    return b"[" + b",".join(rows) + b"]"
