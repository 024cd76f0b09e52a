"""A dataset that is larger than memory: its blocks become batches while the network works on the block before."""

import os
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import NamedTuple

from munjang.data.examples import Examples
from munjang.data.objects import is_held, is_stream
from munjang.data.reading import folded_texts
from munjang.data.sampling import shortage
from munjang.data.streaming import Stream
from munjang.engine.ahead import ahead
from munjang.errors import InputError
from munjang.progress import Progress
from munjang.training.batches import Batches
from munjang.training.config import TrainConfig
from munjang.training.datasets import (
    Dataset,
    Maker,
    PreparedDataset,
    check_batch_rows,
    check_kind,
    declared,
    held_out,
    reading_of,
)
from munjang.training.step import seed_of
from munjang.training.trainee import Trainee
from munjang.types import Ints


class Place(NamedTuple):
    """The place of the next batch in a stream."""

    epoch: int = 0
    block: int = 0
    batch: int = 0


class Streamed(NamedTuple):
    """Rows of a block that are a batch, and where the next one is."""

    batches: Batches
    rows: Ints
    after: Place


@dataclass(frozen=True)
class PreparedStream(PreparedDataset):
    """A dataset of which one block at a time is read and tokenized; `batches` has the first block's examples."""

    stream: Stream = field(kw_only=True)
    maker: Maker = field(kw_only=True)

    @property
    def num_rows(self) -> int:
        """Return the number of rows, or that of the first block if they were not counted."""
        return self.stream.facts.num_rows

    @property
    def fingerprint(self) -> str:
        """Hash all rows that were counted."""
        return self.stream.facts.fingerprint

    def num_batches(self, seed: int) -> int:
        """Return how many full batches the rows would fill; a sampler that keeps texts apart may need a few more."""
        return -(-self.num_rows // self.batch_size)

    def run(self, seed: int, start: Place) -> Generator[Streamed, None, None]:
        """Yield batches from a place on, pass after pass; the same ones in every call."""
        for epoch in count(start.epoch):
            first = start.block if epoch == start.epoch else 0
            blocks = enumerate(self.stream.blocks(first), first)
            jobs = (partial(self._made, examples, block) for block, examples in blocks if len(examples))
            found = 0
            with closing(ahead(jobs, 1)) as ready:
                for block, batches in ready:
                    drawn = self.rows_of(batches, seed_of(seed, block), epoch)
                    begin = start.batch if (epoch, block) == start[:2] else 0
                    for batch in range(begin, len(drawn)):
                        found += 1
                        yield Streamed(batches, drawn[batch], Place(epoch, block, batch + 1))
            if not found and epoch > start.epoch:
                raise InputError(f"{self.name} has no rows in pass {epoch + 1}; it had {self.num_rows:,}.")

    def _made(self, examples: Examples, block: int) -> tuple[int, Batches]:
        return block, self.maker(examples)


def is_streamed(dataset: Dataset, config: TrainConfig) -> bool:
    """Tell whether a dataset is read block by block: files if asked for, and what yields rows always."""
    data = dataset.data
    return is_stream(data) or (config.stream and not isinstance(data, Examples) and not is_held(data))


def prepare_stream(dataset: Dataset, trainee: Trainee, config: TrainConfig, is_counted: bool) -> PreparedStream:
    """Count a dataset's rows, or look at its first block alone, and build its objective."""
    check_kind(dataset.objective_name, declared(dataset), trainee)
    if any(hasattr(model, "__array__") for model in (dataset.teacher, dataset.guide)):
        raise InputError("Vectors of a teacher or guide belong to rows in memory; give the model itself for a stream.")
    stream = Stream(dataset.data, config.buffer_rows, folded_texts(held_out(config.avoided)), **reading_of(dataset))
    if is_counted:
        shows = not config.quiet and os.environ.get("RANK", "0") == "0"
        with Progress(None, f"counting rows of {stream.name}", enabled=shows) as bar:
            stream.count(bar.advance)
    examples = stream.first()
    facts, size = stream.facts, f"{config.buffer_rows:,}"
    dropped = f" ({facts.num_read - facts.num_rows:,} more are dropped)" if facts.num_read > facts.num_rows else ""
    known = f"{facts.num_rows:,} rows{dropped}, read" if is_counted else "not counted (max_steps), read"
    notes = [note for note in examples.notes if not note.startswith("scores taken as")]
    maker = Maker(dataset, examples, trainee, config)
    made = maker(examples)
    check_batch_rows(examples, dataset.objective_name, maker.objective, maker.batch_size)
    notes += [f"{known} {size} at a time; batches are drawn from one such block"]
    if maker.sampler == "no_duplicates" and (note := shortage(made.numbers, maker.batch_size)) is not None:
        notes.append(f"in the first block, {note}")
    made.examples = replace(made.examples, notes=tuple(notes))
    return PreparedStream(
        *(stream.name, dataset.objective_name, maker.objective, made, maker.batch_size, maker.sampler),
        settings={**maker.settings, "buffer_rows": config.buffer_rows},
        stream=stream,
        maker=maker,
    )
