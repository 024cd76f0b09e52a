"""One call of a cross-encoder: pairs to logits, every text tokenized once, equal pairs computed once.

B pairs, C labels.
"""

from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
from torch import nn

from munjang.engine.encoding import check_ids
from munjang.engine.executor import Executor
from munjang.engine.pipeline import Job, Work, ahead, compute
from munjang.engine.replicas import Replicas
from munjang.nn.encoder import Encoder
from munjang.progress import Progress
from munjang.text.flat import cumulative, gather
from munjang.text.tokenizer import Tokenizer
from munjang.types import Bools, Floats, Ids, Ints

WINDOW = 8192  # pairs put together and sorted at a time


@dataclass
class PairEngine:
    """What a call needs of a model."""

    network: nn.Module
    tokenizer: Tokenizer
    executor: Executor
    num_labels: int
    replicas: Replicas | None = None  # the same model on more devices

    def score(
        self, first: list[str], second: list[str], batch_tokens: int | None = None, progress: bool | None = None
    ) -> tuple[Floats, Ints, int]:
        """Logits of the distinct pairs, which of them each pair is, and how many pairs were too long."""
        places: dict[tuple[str, str], int] = {}
        row_of = np.array([places.setdefault(pair, len(places)) for pair in zip(first, second, strict=True)], np.int64)
        pairs = list(places)
        if self.replicas is not None and self.replicas.are_worth(len(pairs), WINDOW):
            with Progress(len(pairs), "scoring", progress) as bar:
                logits, is_cut = self.replicas.compute(self, pairs, WINDOW, (batch_tokens,), bar)
        else:
            logits, is_cut = self.part(pairs, batch_tokens, progress)
        return logits, row_of, int(is_cut[row_of].sum())

    def part(
        self, pairs: list[tuple[str, str]], batch_tokens: int | None, progress: bool | None = False
    ) -> tuple[Floats, Bools]:
        """Logits of distinct pairs on this device alone, and which of the pairs were too long."""
        executor, network = self.executor, self.network
        encoder = getattr(network, "encoder", None)
        shape = encoder.shape if isinstance(encoder, Encoder) else None
        out, is_cut = np.empty((len(pairs), self.num_labels), np.float32), np.zeros(len(pairs), bool)
        vocab_size = None if shape is None else shape.vocab_size
        jobs = _jobs(self.tokenizer, pairs, is_cut, vocab_size, executor.num_tokenizers)

        forward = partial(executor.run, network=network)
        pad_id = None if shape is None else shape.pad_id
        threads = executor.num_tokenizers if len(jobs) > 1 else 0
        stream = compute(executor, jobs, forward, batch_tokens, pad_id, threads=threads)
        with Progress(len(pairs), "scoring", progress) as bar, closing(stream) as results:
            for rows, _, logits in results:
                out[rows] = logits.float().numpy()
                bar.advance(len(rows))
        return out, is_cut


def _jobs(
    tokenizer: Tokenizer,
    pairs: list[tuple[str, str]],
    is_cut: Bools,
    vocab_size: int | None,
    threads: int,
) -> list[Job]:
    flat, lengths, row_of = _bodies(tokenizer, pairs, threads)
    if vocab_size is not None:
        check_ids(flat, vocab_size)
    starts = cumulative(lengths)

    def work(start: int) -> Work:
        a, b = row_of[start : start + WINDOW].T
        tokens = tokenizer.join(
            gather(flat, starts, a, lengths[a]), lengths[a], gather(flat, starts, b, lengths[b]), lengths[b]
        )
        is_cut[start : start + WINDOW] = tokens.cut_rows
        return Work(np.arange(start, start + len(a)), tokens)

    return [partial(work, start) for start in range(0, len(pairs), WINDOW)]


def _bodies(tokenizer: Tokenizer, pairs: list[tuple[str, str]], threads: int) -> tuple[Ids, Ints, Ints]:
    """Each distinct text tokenized once, and for each pair where its two texts are: [B, 2]."""
    place: dict[str, int] = {}
    for pair in pairs:
        for text in pair:
            place.setdefault(text, len(place))
    texts = list(place)
    jobs = [partial(tokenizer.bodies, texts[start : start + WINDOW]) for start in range(0, len(texts), WINDOW)]
    parts = list(ahead(jobs, threads if len(jobs) > 1 else 0)) or [tokenizer.bodies([])]
    flat, lengths = (np.concatenate(part) for part in zip(*parts, strict=True))
    row_of = np.array([[place[a], place[b]] for a, b in pairs], np.int64).reshape(-1, 2)
    return flat, lengths, row_of
