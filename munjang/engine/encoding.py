"""One call of `encode`: texts to rows, each distinct text computed once, into one array.

B texts, U distinct texts, D width.
"""

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from munjang.engine.executor import Executor
from munjang.engine.pipeline import Job, Work, compute
from munjang.engine.replicas import Replicas
from munjang.errors import CheckpointError, InputError, TruncationWarning, unknown
from munjang.nn.network import SentenceNetwork, finish
from munjang.progress import Progress
from munjang.text.flat import cumulative
from munjang.text.packing import Packed
from munjang.text.tokenizer import Tokenizer, Tokens
from munjang.types import Bools, Doubles, Floats, Ids, Ints, TokenIds
from munjang.vectors.precision import quantize

MANY_JOBS = 8  # windows, beside a GPU: so many are worth starting processes that tokenize
WINDOW = 4096  # texts tokenized and sorted together: enough for even batches, few enough to start soon
LONG = ("truncate", "average", "error")
OUTPUTS = ("numpy", "torch", "tokens")


@dataclass(frozen=True)
class Encoding:
    """The options of one call."""

    prompt: str = ""
    normalize: bool | None = None
    truncate_dim: int | None = None
    precision: str = "float32"
    long: str = "truncate"
    batch_tokens: int | None = None
    output: str = "numpy"
    ranges: Floats | None = None

    def __post_init__(self) -> None:
        if self.long not in LONG:
            raise unknown("long", self.long, LONG)
        if self.output not in OUTPUTS:
            raise unknown("output", self.output, OUTPUTS)
        if self.output == "tokens" and (self.precision, self.truncate_dim, self.long) != ("float32", None, "truncate"):
            raise InputError(
                "output='tokens' gives the token vectors as they are: no precision, truncate_dim or long with it."
            )


@dataclass
class Engine:
    """What a call needs of a model."""

    network: SentenceNetwork
    tokenizer: Tokenizer
    executor: Executor
    width: int
    vocab_size: int
    pad_id: int | None
    replicas: Replicas | None = None  # the same model on more devices

    def encode(self, texts: list[str] | TokenIds, options: Encoding, progress: bool | None = None) -> Any:
        """Vectors of a list of texts, or of ready token ids."""
        if isinstance(texts, TokenIds):
            given = _given(texts, self.vocab_size, self.tokenizer.max_length)
            return self._run([lambda: given], len(texts), options, progress)
        distinct = list(dict.fromkeys(texts))
        row_of = None if len(distinct) == len(texts) else _rows(texts, distinct)
        if self.replicas is not None and options.output == "numpy" and self.replicas.are_worth(len(distinct), WINDOW):
            with Progress(len(distinct), "encoding", progress) as bar:
                result, is_cut = self.replicas.compute(self, distinct, WINDOW, (options,), bar)
        else:
            result, is_cut = self.part(distinct, options, progress)
        _report_cuts(is_cut if row_of is None else is_cut[row_of], self.tokenizer.max_length, options.long)
        return result if row_of is None else _spread(result, row_of)

    def rows_at_once(self, chunk_rows: int) -> int:
        """How many texts of a stream to read together: one chunk, or as many as give every device two windows."""
        num_others = 0 if self.replicas is None else len(self.replicas.others)
        return chunk_rows if not num_others else chunk_rows * -(-2 * WINDOW * (1 + num_others) // chunk_rows)

    def part(self, texts: list[str], options: Encoding, progress: bool | None = False) -> tuple[Any, Bools]:
        """Vectors of distinct texts on this device alone, and which of the texts were too long."""
        is_cut = np.zeros(len(texts), bool)
        return self._run(self._jobs(texts, options, is_cut), len(texts), options, progress), is_cut

    def _jobs(self, texts: list[str], options: Encoding, is_cut: Bools) -> list[Job]:
        """Windows of texts, to be tokenized with the prompt in front of each."""
        prompt, tokenizer = options.prompt, self.tokenizer
        head = tokenizer.prompt_length(prompt) if prompt else 0
        return [partial(self._work, texts, start, head, options, is_cut) for start in range(0, len(texts), WINDOW)]

    def _work(self, texts: list[str], start: int, head: int, options: Encoding, is_cut: Bools) -> Work:
        prompt, tokenizer = options.prompt, self.tokenizer
        window = texts[start : start + WINDOW]
        prompted = [prompt + text for text in window] if prompt else window
        if options.long == "average":
            tokens, text_of = tokenizer.windows(prompted, head - len(tokenizer.single.parts[0][0]) if prompt else 0)
        else:
            tokens, text_of = tokenizer(prompted), np.arange(len(window))
        if options.long == "error" and tokens.cut_rows.any():
            row = start + int(np.flatnonzero(tokens.cut_rows)[0])
            raise InputError(
                f"{int(tokens.cut_rows.sum())} texts are longer than {tokenizer.max_length} tokens, "
                f"the first being {texts[row]!r:.60}."
            )
        check_ids(tokens.ids, self.vocab_size)
        if options.long == "truncate":
            is_cut[start : start + len(window)] = tokens.cut_rows
        skipped = head if prompt and not self.network.includes_prompt else 0
        return Work(start + text_of, tokens, np.full(len(tokens.lengths), skipped) if skipped else None)

    def _run(self, jobs: list[Job], num_rows: int, options: Encoding, progress: bool | None) -> Any:
        device = self.executor.device
        stays_there = options.output == "torch" and device.type != "cpu" and options.long != "average"
        forward = self._token_states if options.output == "tokens" else self._forward(options)
        width = options.truncate_dim or self.width
        threads = self.executor.num_tokenizers if len(jobs) > 1 else 0
        if len(jobs) >= MANY_JOBS and device.type == "cuda":
            self.tokenizer.start_processes(threads)
        stream = compute(self.executor, jobs, forward, options.batch_tokens, self.pad_id, stays_there, threads)
        with Progress(num_rows, "encoding", progress) as bar, closing(stream) as results:
            if options.output == "tokens":
                return _collect_tokens(results, num_rows, bar)
            if stays_there:
                return _collect_there(results, num_rows, width, device, options, bar)
            if options.long == "average":
                out = _average(results, num_rows, width, bar)
                if self._has_unit_length(options):
                    out /= np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-12)
            else:
                out = np.empty((num_rows, width), np.float32)
                place = _placer(out, device)
                for rows, _, vectors in results:
                    place(rows, vectors)
                    bar.advance(len(rows))
        codes = quantize(out.astype(np.float32, copy=False), options.precision, options.ranges)
        return torch.from_numpy(codes).to(device) if options.output == "torch" else codes

    def _has_unit_length(self, options: Encoding) -> bool:
        return bool(options.normalize) or (
            options.normalize is None and self.network.is_unit and options.truncate_dim is None
        )

    def _token_states(self, batch: Packed) -> Tensor:
        states_TD: Tensor = self.network.encoder(batch.to(self.executor.device))
        return states_TD.float()

    def _forward(self, options: Encoding) -> Any:
        is_raw, executor = options.normalize is False, self.executor

        def plain(batch: Packed) -> Tensor:
            return self.network(batch.to(executor.device), is_raw).float()

        def forward(batch: Packed) -> Tensor:
            # graphs hold the whole network, a Normalize at its end included
            vectors_BD = plain(batch) if is_raw else executor.run(batch, plain)
            return finish(vectors_BD, options.truncate_dim, options.normalize)

        return forward


def _placer(out: NDArray[Any], device: torch.device) -> Callable[[Ints, Tensor], object]:
    """How rows get to their place: beside a GPU by torch, which leaves the interpreter to other threads meanwhile."""
    if device.type != "cuda":  # not here: in a forked child torch would wait for threads that the fork left behind
        return lambda rows, vectors: out.__setitem__(rows, vectors.numpy())
    target = torch.from_numpy(out)
    return lambda rows, vectors: target.index_copy_(0, torch.from_numpy(rows), vectors)


def _report_cuts(is_cut: Bools, limit: int | None, long: str) -> None:
    """Say how many of the caller's texts were too long, duplicates counted as often as they came."""
    if long == "truncate" and is_cut.any():
        warnings.warn(
            f"{int(is_cut.sum())} of {len(is_cut)} texts are longer than {limit} tokens and were cut; "
            "long='average' reads them whole, long='error' refuses them.",
            TruncationWarning,
            stacklevel=4,
        )


def check_ids(ids: Ids, vocab_size: int) -> None:
    """Refuse ids that the embedding table does not have: on a GPU they would end the whole process."""
    if len(ids) and int(ids.max()) >= vocab_size:
        raise CheckpointError(
            f"The tokenizer gives the id {int(ids.max())}, but the model has {vocab_size} embeddings; they are not of "
            "one model, or a token was added without a row for it."
        )


def _given(texts: TokenIds, vocab_size: int, limit: int | None) -> Work:
    flat, lengths = texts.flat, texts.lengths
    if len(flat) and not 0 <= int(flat.min()) <= int(flat.max()) < vocab_size:
        raise InputError(
            f"Token ids must lie between 0 and {vocab_size - 1}, the model's vocabulary; "
            f"found {int(flat.min())} to {int(flat.max())}."
        )
    if limit is not None and (lengths > limit).any():
        raise InputError(
            f"Text {int(np.argmax(lengths > limit))} has {int(lengths.max())} token ids; the model reads {limit}."
        )
    return Work(np.arange(len(lengths)), Tokens(flat, lengths))


def _rows(texts: list[str], distinct: list[str]) -> Ints:
    place = {text: row for row, text in enumerate(distinct)}
    return np.fromiter((place[text] for text in texts), np.int64, len(texts))


def _spread(distinct: Any, row_of: Ints) -> Any:
    """Rows of the distinct texts to every place where they stood."""
    if isinstance(distinct, list):
        return [distinct[row] for row in row_of]
    if not isinstance(distinct, Tensor):
        return distinct[row_of]
    if distinct.device.type == "cpu":
        return torch.from_numpy(distinct.numpy()[row_of])
    return distinct[torch.from_numpy(row_of).to(distinct.device)]


def _collect_tokens(results: Any, num_rows: int, bar: Progress) -> list[Floats]:
    out: list[Floats] = [np.zeros((0, 0), np.float32)] * num_rows
    for rows, batch, states in results:
        parts = np.split(states.numpy(), cumulative(batch.lengths)[1:-1])
        for row, part in zip(rows.tolist(), parts, strict=True):
            out[row] = part.copy()
        bar.advance(len(rows))
    return out


def _collect_there(
    results: Any, num_rows: int, width: int, device: torch.device, options: Encoding, bar: Progress
) -> Tensor:
    out = torch.empty(num_rows, width, device=device)
    for rows, _, vectors in results:
        out[torch.from_numpy(rows).to(device)] = vectors
        bar.advance(len(rows))
    if options.precision == "float32":
        return out
    return torch.from_numpy(quantize(out.cpu().numpy(), options.precision, options.ranges)).to(device)


def _average(results: Any, num_rows: int, width: int, bar: Progress) -> Doubles:
    """Pieces of a text added up by how many tokens they have."""
    sums, weights = np.zeros((num_rows, width), np.float64), np.zeros(num_rows, np.float64)
    for rows, batch, vectors in results:
        bar.advance(int((weights[np.unique(rows)] == 0).sum()))  # the first piece of a text counts for it
        np.add.at(sums, rows, vectors.numpy().astype(np.float64) * batch.lengths[:, None])
        np.add.at(weights, rows, batch.lengths)
    return sums / np.maximum(weights, 1)[:, None]
