"""Kiwi, which cuts Korean into morphemes: an optional package, of which one copy is enough for everybody."""

import threading
from functools import cache
from importlib.util import find_spec
from typing import Any

_lock = threading.Lock()


@cache
def has_kiwi() -> bool:
    """Whether Korean is cut by morphemes here."""
    return find_spec("kiwipiepy") is not None


def kiwi() -> Any:
    """The analyser, loaded on first use and for any number of threads: it takes a second and hundreds of MB."""
    with _lock:  # else threads that come at once would load one each
        return _loaded()


@cache
def _loaded() -> Any:
    from kiwipiepy import Kiwi

    return Kiwi()
