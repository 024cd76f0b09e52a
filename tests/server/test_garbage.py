"""Objects that are left out of collections are looked at again when something else was loaded."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from munjang.server.garbage import is_leaving_out, leave_out_loaded


class Node:
    """Refers to itself, so only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_is_loaded_is_left_out_until_the_next_time() -> None:
    node = Node()
    seen = weakref.ref(node)
    leave_out_loaded()
    assert is_leaving_out()
    del node
    gc.collect()
    assert seen() is not None  # nothing looks there
    leave_out_loaded()
    assert seen() is None
