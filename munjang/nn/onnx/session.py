"""An exported graph as a network: onnxruntime over packed batches, cut into rectangles of texts of similar length.

B texts, L longest text of a rectangle, T tokens without padding, D width, C labels.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from munjang.errors import CheckpointError, InputError, MissingExtra
from munjang.nn.onnx.encoder import IDS, MASK, TYPES
from munjang.nn.onnx.graph import SKIP
from munjang.nn.onnx.outputs import LOGITS, RAW, TOKENS, VECTORS
from munjang.nn.rectangle import Rectangle
from munjang.text.flat import cumulative
from munjang.text.packing import Packed
from munjang.types import Array, Floats, Ints

MAX_PADDING_FRACTION = 0.1  # of a rectangle; with more the next one begins
MAX_IGNORED_PADDING_SLOTS = 32  # so few are not worth another call


@dataclass(frozen=True)
class Facts:
    """The facts about a graph that its nodes do not say."""

    dtype: str  # float32 or int8, of the encoder's weights
    width: int  # of a token vector
    num_outputs: int  # dimension of a vector, or labels
    num_rows: int  # of the embedding table
    num_weights: int
    num_linear: int  # those of them that every token passes through
    max_tokens: int | None
    pad_id: int
    digest: str  # of the weights and modules that it was made of
    modes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()  # names of those after pooling
    includes_prompt: bool = True


class OnnxModel(Rectangle):
    """A graph file, run by onnxruntime on the CPU. Any number of threads may call it."""

    engine = "onnxruntime (padded)"
    is_exported = True

    def __init__(self, path: Path, facts: Facts, outputs: tuple[str, ...]) -> None:
        super().__init__(facts.pad_id)
        self.path, self.about = path, facts
        self._sessions: dict[tuple[int, int], Any] = {}
        session = self._session(1)
        self.inputs = [value.name for value in session.get_inputs()]
        shapes = {value.name: value.shape for value in session.get_outputs()}
        wanted = {name: facts.num_outputs for name in outputs if name != TOKENS}
        missing = [name for name, width in wanted.items() if name not in shapes or shapes[name][-1] != width]
        if missing or {IDS, MASK} - set(self.inputs) or set(self.inputs) - {IDS, MASK, TYPES, SKIP}:
            raise CheckpointError(f"{path} has other inputs and outputs than its description says; export it again.")

    def _session(self, threads: int) -> Any:
        """Return the session for a number of threads; a forked child opens its own: threads do not survive a fork."""
        key = (os.getpid(), threads)
        if key not in self._sessions:
            self._sessions[key] = open_session(self.path, threads)
        return self._sessions[key]

    def run(self, batch: Packed, output: str) -> Tensor:
        """Compute one output of the graph: a row per text, or per token."""
        # the executor has told torch how many cores this thread may use; the graph keeps to it
        session = self._session(torch.get_num_threads())
        parts = []
        for part in rectangles(batch):
            padded = self.pad(part)
            inputs = {IDS: padded.ids_BL, MASK: padded.mask_BL, TYPES: padded.types_BL}
            feed: dict[str, Array] = {
                name: np.zeros(padded.ids_BL.shape, np.int64) if value is None else value.numpy()
                for name, value in inputs.items()
                if name in self.inputs
            }
            if SKIP in self.inputs:
                feed[SKIP] = np.zeros(len(part.lengths), np.int64) if part.skip is None else part.skip
            values = torch.from_numpy(self._call(session, output, feed))
            parts.append(values[padded.places] if output == TOKENS else values)
        return torch.cat(parts)

    def _call(self, session: Any, output: str, feed: dict[str, Array]) -> Floats:
        try:
            values: Floats = session.run([output], feed)[0]
        except Exception as error:  # onnxruntime has an error class for each of its codes
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise CheckpointError(f"{self.path} can't be computed ({reason:.200}); export it again.") from error
        return values

    def forward(self, batch: Packed) -> Tensor:
        """Return the token vectors [T, D]."""
        return self.run(batch, TOKENS)

    @property
    def vocab_size(self) -> int:
        return self.about.num_rows

    @property
    def width(self) -> int:
        return self.about.width

    @property
    def max_tokens(self) -> int | None:
        return self.about.max_tokens

    def check_device(self, device: torch.device) -> None:
        """Refuse what the graph can't run on."""
        if device.type != "cpu":
            raise InputError(f"An ONNX export runs on the CPU here, not on {device}; load the model itself there.")


class OnnxNetwork(nn.Module):
    """The base of both kinds of graphs, with facts from the file beside the graph."""

    is_trainable = False

    def __init__(self, path: Path, facts: Facts, outputs: tuple[str, ...]) -> None:
        super().__init__()
        self.about = facts
        self.encoder = OnnxModel(path, facts, outputs)

    @property
    def num_outputs(self) -> int:
        """The dimension of a sentence vector, or the number of labels of a pair."""
        return self.about.num_outputs

    @property
    def num_multiplied(self) -> int:
        """The number of weights that every token is multiplied with."""
        return self.about.num_linear

    @property
    def num_parameters(self) -> int:
        """The number of weights, all of which are inside the graph."""
        return self.about.num_weights

    def digest(self) -> str:
        """Return the hash of the model that the graph was made of."""
        return self.about.digest

    def to_compute(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Check the device; the graph has its own type."""
        self.encoder.check_device(device)
        return self.eval()


class OnnxSentences(OnnxNetwork):
    """The graph of a bi-encoder."""

    def __init__(self, path: Path, facts: Facts) -> None:
        is_unit = bool(facts.modules) and facts.modules[-1] == "Normalize"
        super().__init__(path, facts, (VECTORS, *([RAW] if is_unit else []), TOKENS))
        self.is_unit = is_unit
        self.modes, self.module_names = facts.modes, list(facts.modules)
        self.includes_prompt = facts.includes_prompt

    def forward(self, batch: Packed) -> Tensor:
        """Return the sentence vectors [B, D]."""
        return self.encoder.run(batch, VECTORS)

    def raw(self, batch: Packed) -> Tensor:
        """Return the vectors before a final Normalize."""
        return self.encoder.run(batch, RAW if self.is_unit else VECTORS)


class OnnxPairs(OnnxNetwork):
    """The graph of a cross-encoder."""

    def __init__(self, path: Path, facts: Facts) -> None:
        super().__init__(path, facts, (LOGITS,))

    def forward(self, batch: Packed) -> Tensor:
        """Return the logits [B, C]."""
        return self.encoder.run(batch, LOGITS)


def open_session(path: Path, threads: int, is_overflow_safe: bool = False) -> Any:
    """Open a file as a session of onnxruntime, with its fusions and `threads` threads.

    `is_overflow_safe` selects the slower 8-bit product that never overflows, which CPUs without VNNI need.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("onnxruntime", "onnx", f"The ONNX export {path.parent}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # errors are raised as well
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads would keep cores busy
    if is_overflow_safe or not torch.cpu._is_vnni_supported():  # two products of int8 are added in 16 bits there
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has an error class for each of its codes
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointError(f"{path} is missing, damaged or cut off ({reason:.200}); export it again.") from error


def rectangles(batch: Packed) -> Iterator[Packed]:
    """Cut a batch into rectangles of similar length; it is sorted, so that few slots are padding."""
    starts = cumulative(batch.lengths)
    for first, last in cut_rectangles(batch.lengths):
        tokens = slice(int(starts[first]), int(starts[last]))
        lengths = batch.lengths[first:last]
        yield Packed(
            batch.ids_T[tokens],
            batch.positions_T[tokens],
            None if batch.types_T is None else batch.types_T[tokens],
            torch.from_numpy(cumulative(lengths).astype(np.int32)),
            lengths,
            None if batch.skip is None else batch.skip[first:last],
        )


def cut_rectangles(lengths: Ints) -> Iterator[tuple[int, int]]:
    """Return the first and last text (exclusive) of each rectangle.

    >>> list(cut_rectangles(np.array([200, 195, 20, 18, 4])))
    [(0, 2), (2, 5)]
    """
    first, longest, used = 0, 0, 0
    for row, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        slots = longest * (row + 1 - first)
        if slots - used - length > max(MAX_PADDING_FRACTION * slots, MAX_IGNORED_PADDING_SLOTS):
            yield first, row
            first, longest, used = row, length, 0
        used += length
    if len(lengths):
        yield first, len(lengths)
