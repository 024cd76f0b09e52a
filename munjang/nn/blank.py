"""Modules without weights, into which a checkpoint's are put."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _NothingDrawn(TorchFunctionMode):
    """Skips the functions that draw initial weights.

    There is nothing to draw, and torch imports its compiler to find out: half of the time that loading takes.
    """

    def __torch_function__(
        self, function: Callable[..., Any], types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(function, "__module__", None) == "torch.nn.init":
            return None
        return function(*args, **(kwargs or {}))


@contextmanager
def blank() -> Iterator[None]:
    """Build modules without memory for their weights inside the block."""
    with torch.device("meta"), _NothingDrawn():
        yield
