"""Batches for training: rows of examples to token sequences for the network, with labels, scores and other values.

b examples of this process, B of the whole batch, K sequences of each example, T tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from munjang.data.examples import Examples, number_texts
from munjang.data.sampling import rows_of_process
from munjang.data.tokens import TokenTable
from munjang.errors import InputError
from munjang.objectives.base import Objective
from munjang.text.flat import cumulative, gather
from munjang.text.packing import Packed, pack
from munjang.text.tokenizer import Tokenizer
from munjang.training.corruption import CORRUPTIONS
from munjang.types import Ids, Ints

Values = Mapping[str, NDArray[np.generic]]  # of all examples, by the names of objectives/base.py


@dataclass(frozen=True)
class Batch:
    """One process's sequences of a batch, and the values of the whole batch."""

    rows: Ints  # of the examples, the whole batch
    sizes: tuple[int, ...]  # examples of each process
    ids: Ids  # sequences of this process, the first of every example, then the second of every example, ...
    lengths: Ints  # [K * b]
    types: Ids | None
    num_sequences: int  # of each example
    values: Values  # of the whole batch, or of this process's part for separable objectives
    pad_id: int | None = None
    targets: Ints | None = None  # of this process's sequences, one after the other
    target_lengths: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    skip: Ints | None = None  # leading tokens of each sequence that pooling leaves out

    @property
    def num_own(self) -> int:
        """Count the examples of this process."""
        return len(self.lengths) // self.num_sequences

    @cached_property
    def starts(self) -> Ints:
        """Return where each sequence begins, and where the last one ends."""
        return cumulative(self.lengths)

    def take(self, sequences: Ints) -> Packed:
        """Pack some of the sequences, in this order."""
        lengths = self.lengths[sequences]
        ids = gather(self.ids, self.starts, sequences, lengths)
        types = None if self.types is None else gather(self.types, self.starts, sequences, lengths)
        skip = None if self.skip is None else self.skip[sequences]
        return pack(ids, lengths, types, skip, self.pad_id)

    def known(self, examples: Ints | None, device: torch.device) -> dict[str, Tensor]:
        """Return the values of all examples, or of some of this process's own, on the device."""
        values = self.values if examples is None else {name: value[examples] for name, value in self.values.items()}
        if self.targets is not None and examples is not None:
            lengths = self.target_lengths[examples]
            targets: Ints = gather(self.targets, cumulative(self.target_lengths), examples, lengths)
            values = {**values, "targets": targets, "lengths": lengths}
        return {name: to_device(value, device) for name, value in values.items()}


class Batches:
    """Makes batches of tokenized examples with what an objective needs.

    `vectors` holds other models' vectors of the same texts: "teacher" and "guide", [N, columns, D] each. `skips` says
    how many tokens of each column's texts are a prompt that the model leaves out of pooling.
    """

    def __init__(
        self,
        examples: Examples,
        tables: Sequence[TokenTable],
        objective: Objective,
        tokenizer: Tokenizer,
        pad_id: int | None = None,
        vectors: Values | None = None,
        skips: Sequence[int] = (),
    ) -> None:
        self.examples, self.tables, self.objective, self.tokenizer = examples, tables, objective, tokenizer
        self.pad_id, self.skips = pad_id, tuple(skips)
        self.vectors = dict(vectors or {})
        self.is_pairs = objective.needs == "logits"
        # across columns: an anchor may be another row's positive
        self.numbers = number_texts([text for column in examples.texts for text in column]).reshape(-1, len(examples)).T
        least, most = objective.num_texts
        if not least <= len(tables) <= (most or len(tables)):
            allowed = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            raise InputError(
                f"{examples.name} has {len(tables)} text columns ({', '.join(examples.columns) or 'unnamed'}); "
                f"this objective takes {allowed}."
            )
        for name, values in (("labels", examples.labels), ("scores", examples.scores)):
            if name in objective.extras and values is None:
                raise InputError(f"{examples.name} has no {name}, which this objective needs.")
        for name in ("teacher", "guide"):
            if name in objective.extras and name not in self.vectors:
                raise InputError(f"This objective needs a {name} model; give one.")
        self.corrupt = None if objective.corruption is None else CORRUPTIONS[objective.corruption]
        self.special = np.unique(np.concatenate([ids for ids, _ in tokenizer.single.parts]))
        self.mask_id = tokenizer.rust.token_to_id("[MASK]") or tokenizer.rust.token_to_id("<mask>")
        if objective.corruption == "mask" and self.mask_id is None:
            raise InputError("Masking needs a mask token, and this tokenizer has neither [MASK] nor <mask>.")

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def num_sequences(self) -> int:
        """Count the token sequences of an example that go through the network."""
        if self.is_pairs:
            return len(self.tables) - 1 + self.objective.num_sampled
        return len(self.tables) * self.objective.passes

    def __call__(self, rows: Ints, rank: int, world_size: int, random: np.random.Generator) -> Batch:
        """Make one process's part of the batch of these rows; `random` has the same state in all processes."""
        sizes = tuple(len(rows_of_process(rows, other, world_size)) for other in range(world_size))
        own = rows_of_process(rows, rank, world_size)
        start = sum(sizes[:rank])
        types: Ids | None = None
        targets, target_lengths = None, np.zeros(0, np.int64)
        if self.is_pairs:
            ids, lengths, types = self._pairs(rows, slice(start, start + len(own)), random)
        else:
            ids, lengths = self._texts(own)
        if self.corrupt is not None:
            # drawn for the whole batch, so that it does not depend on the number of processes
            whole, all_lengths = (ids, lengths) if world_size == 1 else self._texts(rows)
            is_special = np.isin(whole, self.special)
            done = self.corrupt(whole, all_lengths, is_special, self.tokenizer.vocab_size, self.mask_id, random)
            mine = slice(start, start + len(own))
            ids, lengths = _rows(done.ids, done.lengths, mine)
            targets, target_lengths = _rows(done.targets, done.target_lengths, mine)
        values = self._values(own if self.objective.is_separable else rows)
        skip = np.repeat(self.skips * self.objective.passes, len(own)) if any(self.skips) else None
        return Batch(
            rows,
            sizes,
            ids,
            lengths,
            types,
            num_sequences=self.num_sequences,
            values=values,
            pad_id=self.pad_id,
            targets=targets,
            target_lengths=target_lengths,
            skip=skip,
        )

    def _values(self, rows: Ints) -> dict[str, NDArray[np.generic]]:
        values: dict[str, NDArray[np.generic]] = {}
        for name in self.objective.extras:
            if name == "labels":
                assert self.examples.labels is not None
                values[name] = self.examples.labels[rows].astype(np.int64)
            elif name == "scores":
                assert self.examples.scores is not None
                values[name] = self.examples.scores[rows].astype(np.float32)
            elif name == "texts":
                values[name] = self.numbers[rows]
            elif name in self.vectors:
                values[name] = np.asarray(self.vectors[name][rows], np.float32)
        return values

    def _texts(self, rows: Ints) -> tuple[Ids, Ints]:
        """Return every column's texts with special tokens, pass by pass."""
        parts = [self.tokenizer.finish(*table.take(rows)) for table in self.tables] * self.objective.passes
        return np.concatenate([part.ids for part in parts]), np.concatenate([part.lengths for part in parts])

    def _pairs(self, rows: Ints, own: slice, random: np.random.Generator) -> tuple[Ids, Ints, Ids | None]:
        """Pair the first column with each of the others, and with documents of other rows if wanted."""
        query = self.tables[0].take(rows[own])
        others = [table.take(rows[own]) for table in self.tables[1:]]
        for drawn in self._other_rows(rows, random):
            others.append(self.tables[1].take(drawn[own]))
        parts = [self.tokenizer.join(*query, *other) for other in others]
        has_types = any(part.types is not None for part in parts)
        types = [np.zeros(len(part.ids), np.int32) if part.types is None else part.types for part in parts]
        ids, lengths = np.concatenate([part.ids for part in parts]), np.concatenate([part.lengths for part in parts])
        return ids, lengths, np.concatenate(types) if has_types else None

    def _other_rows(self, rows: Ints, random: np.random.Generator) -> list[Ints]:
        """Draw, `num_sampled` times, another row for each row, with another document than the row's own."""
        documents, drawn = self.numbers[rows, 1], []
        for _ in range(self.objective.num_sampled):
            if len(np.unique(documents)) < 2:
                raise InputError(f"{self.examples.name}: a batch holds one document only; nothing to compare it with.")
            at = random.integers(0, len(rows), len(rows))
            while (same := documents[at] == documents).any():
                at[same] = random.integers(0, len(rows), int(same.sum()))
            drawn.append(rows[at])
        return drawn


def _rows(flat: Any, lengths: Ints, part: slice) -> tuple[Any, Ints]:
    """Return consecutive rows of a flat array."""
    starts = cumulative(lengths)
    return flat[starts[part.start] : starts[part.stop]], lengths[part]


def to_device(values: NDArray[np.generic], device: torch.device) -> Tensor:
    """Copy to the device without waiting for it."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)
