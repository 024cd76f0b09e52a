"""Tuning: measure how many tokens a batch should have on this machine, once for each kind of network, and keep it.

Kept in `budgets.json` under $XDG_CACHE_HOME/munjang (~/.cache/munjang); where that can't be written, for this process.
MUNJANG_TUNE=0 turns it off: the numbers of engine/run.py are taken then. A training is never interrupted by
it, nor are the evaluations in between: what it holds in memory would be measured too.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from munjang.engine.measure import processor
from munjang.nn.base import Network
from munjang.nn.encoder import Encoder

TUNE_VARIABLE = "MUNJANG_TUNE"
MIN_GAIN = 1.03  # a larger batch takes more memory: it has to be worth it
MAX_TURNS = 3
MAX_TOTAL_S = 2.0  # no third turn after this
MAX_TURN_S = 5.0  # a network that takes longer fills a core with the smallest batch, and Ctrl-C would wait
_known: dict[str, int] = {}
_locks: dict[int, threading.Lock] = {}  # by process: in a forked child, the parent's may be held for ever
_pauses: list[object] = []


def is_on() -> bool:
    """Return whether measuring is allowed now."""
    return os.environ.get(TUNE_VARIABLE, "1") != "0" and not _pauses


@contextmanager
def paused() -> Iterator[None]:
    """Measure nothing inside the block, in any thread."""
    _pauses.append(None)
    try:
        yield
    finally:
        _pauses.pop()


def path() -> Path:
    """Return the path of the file that keeps the numbers."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "munjang" / "budgets.json"


def key_of(encoder: Encoder, device: torch.device, num_workers: int, packed: str) -> str:
    """Return a key of all that the best number depends on: machine, software, shape and dtype of the network."""
    shape = encoder.shape
    size = f"{shape.num_layers}x{shape.width}x{shape.inner_width}"
    return f"{processor(device)}, {num_workers} workers, torch {torch.__version__}, {size}, {packed}"


def find(key: str, candidates: Sequence[int], measure: Callable[[int], float]) -> int:
    """Return the smallest candidate whose rate is within 3 % of the best, from the file or measured now."""
    with _locks.setdefault(os.getpid(), threading.Lock()):
        if key not in _known:
            kept = _read().get(key)
            if kept is not None and kept in candidates:
                _known[key] = kept
            else:
                rates = _in_turns(candidates, measure)
                best = max(rates.values())
                _known[key] = next(candidate for candidate in sorted(rates) if rates[candidate] * MIN_GAIN >= best)
                _write(key, _known[key])
        return _known[key]


def _in_turns(candidates: Sequence[int], measure: Callable[[int], float]) -> dict[int, float]:
    """Measure the best rate of each candidate, in turns, so that a busy moment slows all of them alike.

    There are at least two turns: the first may compile kernels and allocate memory.
    """
    first = min(candidates)
    rates = {first: measure(first)}
    if sum(candidates) / rates[first] > MAX_TURN_S:
        rates[first] = max(rates[first], measure(first))
        if sum(candidates) / rates[first] > MAX_TURN_S:
            return rates
    taken_s = 0.0
    for turn in range(MAX_TURNS):
        for candidate in candidates:
            rate = measure(candidate)
            taken_s += candidate / rate
            rates[candidate] = max(rates.get(candidate, 0.0), rate)
        if turn and taken_s > MAX_TOTAL_S:
            break
    return rates


def arithmetic_of(network: Network) -> str:
    """Return the dtype of the layers and how their weights are prepacked."""
    prepacked = [getattr(module, "prepacked", None) for module in network.modules()]
    packings = sorted({type(packing).__name__ for packing in prepacked if packing is not None})
    dtypes = sorted({str(weight.dtype) for module in network.modules() for weight in module.parameters(recurse=False)})
    return " ".join([*dtypes, *packings])


def _read() -> dict[str, int]:
    with suppress(OSError, ValueError):
        value = json.loads(path().read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return {name: number for name, number in value.items() if isinstance(number, int)}
    return {}


def _write(key: str, number: int) -> None:
    """Write a draft and rename it, as another process may do the same."""
    with suppress(OSError):
        path().parent.mkdir(parents=True, exist_ok=True)
        draft = path().with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({**_read(), key: number}, indent=1, sort_keys=True), encoding="utf-8")
        draft.replace(path())
