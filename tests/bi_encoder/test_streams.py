"""Texts that come one by one: read as they are needed, in order."""

import io
from collections.abc import Iterator

import numpy as np
import pytest

from munjang import BiEncoder
from munjang.errors import InputError
from tests.texts import mixed


def counted(texts: list[str], taken: list[str]) -> Iterator[str]:
    for text in texts:
        taken.append(text)
        yield text


def test_streams_are_read_as_needed(model: BiEncoder) -> None:
    texts, taken = mixed(50, longest=10), []
    results = model.encode(counted(texts, taken), chunk_rows=8)
    assert taken == []
    first = next(results)
    assert len(taken) == 8
    rest = list(results)
    assert [len(part) for part in [first, *rest]] == [8, 8, 8, 8, 8, 8, 2]
    np.testing.assert_allclose(np.concatenate([first, *rest]), model.encode(texts), atol=2e-6)


@pytest.mark.parametrize("kind", ["generator", "map", "file", "iterator"])
def test_kinds_of_streams(model: BiEncoder, kind: str) -> None:
    lines = ["one\n", "둘\n", "three"]
    stream = {
        "generator": lambda: (line for line in lines),
        "map": lambda: map(str.lower, lines),
        "file": lambda: io.StringIO("".join(lines)),
        "iterator": lambda: iter(lines),
    }[kind]()
    np.testing.assert_allclose(np.concatenate(list(model.encode(stream))), model.encode(lines), atol=2e-6)


def test_an_error_of_the_stream_itself(model: BiEncoder) -> None:
    def broken() -> Iterator[str]:
        yield from ["a", "b", "c"]
        raise OSError("the disk is gone")

    results = model.encode(broken(), chunk_rows=2)
    assert len(next(results)) == 2
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)
    assert model.encode("still there").shape == (32,)


def test_chunk_rows_and_streamed_options(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="chunk_rows must be at least 1, not 0"):
        model.encode(iter(["a"]), chunk_rows=0)
    with pytest.raises(InputError, match="Unknown output 'jax'"):  # at the call, not at the first chunk
        model.encode(iter(["a"]), output="jax")
    assert [part.shape for part in model.encode(iter(["a", "b", "a"]), chunk_rows=2, truncate_dim=4)] == [
        (2, 4),
        (1, 4),
    ]
    assert [len(part) for part in model.encode(iter(["a", "b b", "c"]), chunk_rows=2, output="tokens")] == [2, 1]
