"""The engine: one loop from texts or pairs to rows, tokenize -> pack -> run -> place.

`Encoding` and `Scoring` say what one call of `encode` or `predict` wants; `Engine.part` is the loop. Wrappers around
its steps stand in files of their own: ahead.py (threads that tokenize and pack the next windows), replicas.py (more
devices), graphs.py (CUDA graphs), tuning.py (the size of a batch).

D columns of a row.
"""

import copy
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from munjang.engine import on_device
from munjang.engine.ahead import items_ahead
from munjang.engine.distinct import Distinct
from munjang.engine.on_device import Bench, DevicePairs, DeviceTexts
from munjang.engine.pack import Batch, cut_window, pack_window
from munjang.engine.place import Averages, Converted, DeviceRows, HostRows, Place, TokenRows, WindowRows, spread
from munjang.engine.replicas import Replicas
from munjang.engine.run import Executor
from munjang.engine.tokenize import DeviceWindow, Pairs, ReadyIds, Texts, Units
from munjang.errors import InputError, NotFinite, OverflowWarning, unknown
from munjang.nn.base import Network, VectorNetwork
from munjang.nn.network import finish
from munjang.progress import Progress
from munjang.text.packing import Packed
from munjang.text.tokenizer import Tokenizer
from munjang.types import Bools, Floats, Ints, TokenIds
from munjang.vectors.precision import quantize

LONG_MODES = ("truncate", "average", "error")
OUTPUT_TYPES = ("numpy", "torch", "tokens")


class Call(Protocol):
    """The work of one call: its units, its network function and its result."""

    @property
    def name(self) -> str:
        """The label of the progress bar, such as `encoding`."""

    @property
    def window(self) -> int:
        """The number of units tokenized together; a device always gets a multiple of it."""

    @property
    def is_shared(self) -> bool:
        """True if another process, and so another device, may compute some of the rows."""

    @property
    def batch_tokens(self) -> int | None:
        """The number of tokens in a batch; None: the best number for the device."""

    def units(self, items: Any, engine: "Engine") -> Units:
        """Wrap the items, to be tokenized window by window."""

    def forward(self, network: Any) -> Callable[[Packed], Tensor]:
        """Return the network's function that computes a batch; CUDA graphs only run the network itself."""

    def finish(self, results: Tensor) -> Tensor:
        """Change the results of a batch on the device."""

    def place(self, units: Units, engine: "Engine") -> Place:
        """Create the container that collects the results."""


@dataclass(frozen=True)
class Encoding:
    """The options of one call of `encode`."""

    prompt: str = ""
    normalize: bool | None = None
    truncate_dim: int | None = None
    precision: str = "float32"
    long: str = "truncate"
    batch_tokens: int | None = None
    output: str = "numpy"
    ranges: Floats | None = None
    name = "encoding"

    def __post_init__(self) -> None:
        if self.long not in LONG_MODES:
            raise unknown("long", self.long, LONG_MODES)
        if self.output not in OUTPUT_TYPES:
            raise unknown("output", self.output, OUTPUT_TYPES)
        if self.output == "tokens" and (self.precision, self.truncate_dim, self.long) != ("float32", None, "truncate"):
            raise InputError(
                "output='tokens' gives the token vectors as they are: no precision, truncate_dim or long with it."
            )

    @property
    def window(self) -> int:
        return Texts.window

    @property
    def is_shared(self) -> bool:
        return self.output == "numpy"

    def units(self, items: Distinct[str] | TokenIds, engine: "Engine") -> Units:
        vocab_size = engine.network.encoder.vocab_size
        if isinstance(items, TokenIds):
            return ReadyIds(items, vocab_size, engine.tokenizer.max_length)
        given = (items, engine.tokenizer, vocab_size, self.prompt, self.long, engine.network.includes_prompt)
        bench = None if self.long == "average" else engine.bench(len(items))
        return Texts(*given) if bench is None else DeviceTexts(*given, bench=bench)

    def forward(self, network: VectorNetwork) -> Callable[[Packed], Tensor]:
        if self.output == "tokens":
            return network.encoder
        return network.raw if self.normalize is False else network

    def finish(self, results: Tensor) -> Tensor:
        return finish(results.float(), self.truncate_dim, self.normalize)

    def place(self, units: Units, engine: "Engine") -> Place:
        device, dimension = engine.executor.device, self.truncate_dim or engine.network.num_outputs
        is_on_gpu, num_units = device.type != "cpu", len(units)
        place: Place
        if self.output == "tokens":
            return TokenRows(num_units)
        if self.long == "average":
            place = Averages(num_units, dimension, self._is_unit(engine.network))
        elif self.output == "torch" and is_on_gpu:
            place = DeviceRows(num_units, dimension, device)
        elif isinstance(units, DeviceTexts):
            place = WindowRows(num_units, dimension, device)
        else:
            place = HostRows(num_units, dimension, device.type == "cuda")
        if self.precision == "float32" and (self.output == "numpy" or isinstance(place, DeviceRows)):
            return place
        return Converted(place, partial(self._convert, device=device))

    def _is_unit(self, network: VectorNetwork) -> bool:
        return bool(self.normalize) or (self.normalize is None and network.is_unit and self.truncate_dim is None)

    def _convert(self, rows: Any, device: torch.device) -> Any:
        codes = quantize(rows.cpu().numpy() if isinstance(rows, Tensor) else rows, self.precision, self.ranges)
        return torch.from_numpy(codes).to(device) if self.output == "torch" else codes


@dataclass(frozen=True)
class Scoring:
    """The options of one call of `predict`, which turns pairs into logits."""

    batch_tokens: int | None = None
    name = "scoring"
    is_shared = True

    @property
    def window(self) -> int:
        return Pairs.window

    def units(self, items: Distinct[tuple[str, str]], engine: "Engine") -> Units:
        vocab_size, bench = engine.network.encoder.vocab_size, engine.bench(len(items))
        if bench is not None:
            return DevicePairs(items.all(), engine.tokenizer, vocab_size, bench)
        return Pairs(items.all(), engine.tokenizer, vocab_size, engine.executor.num_tokenizers)

    def forward(self, network: Network) -> Callable[[Packed], Tensor]:
        return network

    def finish(self, results: Tensor) -> Tensor:
        return results.float()

    def place(self, units: Units, engine: "Engine") -> Place:
        return HostRows(len(units), engine.network.num_outputs)


@dataclass(frozen=True)
class Computed:
    """The rows of the distinct items, and the row that belongs to each item of the call."""

    rows: Any
    is_cut: Bools  # which distinct items were too long
    row_of: Ints | None = None  # None: all items are distinct

    @property
    def num_cut(self) -> int:
        """The number of items that were too long, duplicates included."""
        return int((self.is_cut if self.row_of is None else self.is_cut[self.row_of]).sum())

    def spread(self, rows: Any = None) -> Any:
        """Return a row for every item, from the computed rows or from others that correspond to them."""
        rows = self.rows if rows is None else rows
        return rows if self.row_of is None else spread(rows, self.row_of)


@dataclass
class Engine:
    """A network, its tokenizer and its device."""

    network: Any
    tokenizer: Tokenizer
    executor: Executor
    replicas: Replicas | None = None  # the same model on more devices
    wider: "Engine | None" = None  # the same network in bfloat16, once float16 was too small for it

    def compute(self, items: Sequence[Any] | TokenIds, call: Call, progress: bool | None = None) -> Computed:
        """Compute every distinct item once, on all devices."""
        if isinstance(items, TokenIds):
            return Computed(*self.part(items, call, progress))
        distinct = Distinct[Any](items if isinstance(items, list) else list(items))
        if self.replicas is not None and self.replicas.are_worth(len(items), call):
            with Progress(len(distinct.all()), call.name, progress) as bar:
                return Computed(*self.replicas.compute(self, distinct.all(), call, bar), distinct.rows())
        return Computed(*self.part(distinct, call, progress), distinct.rows())

    def part(self, items: Any, call: Call, progress: bool | None = False) -> tuple[Any, Bools]:
        """Compute distinct items on this device alone; return their rows, and which items were too long.

        Where float16 is too small for an activation, its text has no finite numbers in the end: then everything is
        computed again in bfloat16, this time and from then on.
        """
        if self.wider is not None:
            return self.wider.part(items, call, progress)
        try:
            return self._part(items, call, progress)
        except NotFinite:
            if all(weight.dtype != torch.float16 for weight in self.network.encoder.parameters()):
                raise
        network, executor = copy.deepcopy(self.network), self.executor
        network.to_compute(executor.device, torch.bfloat16)
        wider = Engine(network, self.tokenizer, Executor(network, executor.device, executor.threads))
        computed = wider._part(items, call, progress)  # raises the error again if it is due to weights or training
        self.wider = wider
        warnings.warn(
            "This model computes numbers that are too large for float16, and goes over to bfloat16; loaded with "
            "dtype='bfloat16' it begins there.",
            OverflowWarning,
            stacklevel=5,
        )
        return computed

    def _part(self, items: Any, call: Call, progress: bool | None) -> tuple[Any, Bools]:
        units = call.units(Distinct.checked(items) if isinstance(items, list) else items, self)
        forward = call.forward(self.network)
        place, starts = call.place(units, self), units.starts
        jobs = (partial(self._pack, units, start, call.batch_tokens) for start in starts)
        batches = items_ahead(jobs, min(self.executor.num_tokenizers, units.max_ahead) if len(starts) > 1 else 0)
        results = self.executor.results(batches, forward, call.finish, place.keeps_device)
        # closed here: whoever holds an error would hold the threads too
        with Progress(len(units), call.name, progress) as bar, closing(batches), closing(results):
            for batch, rows in results:
                bar.advance(place(batch, rows))
        return place.done(len(units)), units.is_cut[: len(units)]

    def _pack(self, units: Units, start: int, batch_tokens: int | None) -> list[Batch]:
        window = units.tokenize(start)
        if isinstance(window, DeviceWindow):
            with self.executor.tokenizing():
                return cut_window(window, self.executor.budget(len(window.row.ids_T), batch_tokens))
        budget = self.executor.budget(len(window.tokens.ids), batch_tokens)
        return pack_window(window, budget, self.network.encoder.uncounted_id, self.executor.lay_out)

    def bench(self, num_units: int) -> Bench | None:
        """Return what it takes to tokenize on the device; None: the host does it, or is done with so few sooner."""
        device = self.executor.device
        if num_units < on_device.MIN_UNITS or device.type not in on_device.DEVICES_THAT_TOKENIZE:
            return None
        with self.executor.tokenizing():
            lookup = self.tokenizer.on(device)
        uncounted_id = self.network.encoder.uncounted_id
        return None if lookup is None else Bench(lookup, self.executor.tokenizing, uncounted_id)

    def rows_at_once(self, chunk_rows: int) -> int:
        """Return how many texts of a stream to read together: one chunk, or two windows for every device."""
        num_others = 0 if self.replicas is None else len(self.replicas.others)
        if not num_others:
            return chunk_rows
        return chunk_rows * -(-2 * Texts.window * (1 + num_others) // chunk_rows)
