"""Samplers under their names: which rows of a dataset share a batch, and which dataset is next."""

from collections import defaultdict
from collections.abc import Iterator
from enum import StrEnum
from itertools import accumulate, cycle
from typing import Any

import torch
from torch.utils.data import BatchSampler, ConcatDataset, SubsetRandomSampler


class BatchSamplers(StrEnum):
    """Ways to group the rows of a dataset."""

    BATCH_SAMPLER = "batch_sampler"
    NO_DUPLICATES = "no_duplicates"
    NO_DUPLICATES_HASHED = "no_duplicates_hashed"
    GROUP_BY_LABEL = "group_by_label"


class MultiDatasetBatchSamplers(StrEnum):
    """Ways in which several datasets alternate."""

    ROUND_ROBIN = "round_robin"
    PROPORTIONAL = "proportional"


class SetEpochMixin:
    """An epoch that changes the order."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch."""
        self.epoch = epoch


class DefaultBatchSampler(SetEpochMixin, BatchSampler):
    """Consecutive rows of another sampler."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last)
        self.dataset, self.valid_label_columns = dataset, valid_label_columns
        self.generator, self.seed = generator, seed

    def seeded(self) -> torch.Generator | None:
        """Return the generator, seeded for this epoch."""
        if self.generator is not None and self.seed is not None:
            self.generator.manual_seed(self.seed + self.epoch)
        return self.generator


class GroupByLabelBatchSampler(DefaultBatchSampler):
    """Batches in which each label occurs twice or more, for triplet losses over labels."""

    def __init__(self, dataset: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(dataset, *args, **kwargs)
        names = [name for name in self.valid_label_columns or ["label", "labels"] if name in dataset.column_names]
        if not names:
            raise ValueError(
                f"None of the valid_label_columns {self.valid_label_columns} are in the dataset, "
                f"which only has these columns: {dataset.column_names}."
            )
        labels = dataset[names[0]]
        labels = labels[:] if not isinstance(labels, list) else labels
        rows: dict[Any, list[int]] = defaultdict(list)
        for row, label in enumerate(labels):
            rows[label.item() if hasattr(label, "item") else label].append(row)
        self.groups = {label: found[: len(found) // 2 * 2] for label, found in rows.items() if len(found) >= 2}
        if len(self.groups) < 2:
            raise ValueError(
                "GROUP_BY_LABEL requires at least two labels with at least two samples each; "
                f"there are {len(self.groups)}."
            )

    def __iter__(self) -> Iterator[list[int]]:
        generator = self.seeded()
        pairs = []
        for rows in self.groups.values():
            order = [rows[place] for place in torch.randperm(len(rows), generator=generator).tolist()]
            pairs += [order[start : start + 2] for start in range(0, len(order), 2)]
        batch: list[int] = []
        for place in torch.randperm(len(pairs), generator=generator).tolist():
            batch += pairs[place]
            if len(batch) >= self.batch_size:
                yield batch[: self.batch_size]
                batch = batch[self.batch_size :]
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = sum(map(len, self.groups.values()))
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class NoDuplicatesBatchSampler(DefaultBatchSampler):
    """Batches in which no value occurs in two rows: it would be a false negative."""

    def __init__(self, dataset: Any, *args: Any, precompute_hashes: bool = False, **kwargs: Any) -> None:
        super().__init__(dataset, *args, **kwargs)
        labels = [name for name in self.valid_label_columns or [] if name in dataset.column_names][:1]
        self.columns = [name for name in dataset.column_names if name not in (*labels, "dataset_name")]
        self.precompute_hashes = precompute_hashes
        self._values: list[frozenset[str]] | None = None

    def values(self) -> list[frozenset[str]]:
        """Return the values of each row, read once."""
        if self._values is None:
            columns = [self.dataset[name] for name in self.columns]
            self._values = [frozenset(_flat(row)) for row in zip(*columns, strict=True)]
        return self._values

    def __iter__(self) -> Iterator[list[int]]:
        values = self.values()
        waiting = dict.fromkeys(torch.randperm(len(values), generator=self.seeded()).tolist())
        while waiting:
            batch: list[int] = []
            taken: set[str] = set()
            for row in waiting:
                if taken.isdisjoint(values[row]):
                    batch.append(row)
                    taken |= values[row]
                    if len(batch) == self.batch_size:
                        break
            for row in batch:
                del waiting[row]
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def _flat(row: tuple[Any, ...]) -> Iterator[str]:
    for value in row:
        if isinstance(value, (list, tuple)):
            yield from map(str, value)
        else:
            yield str(value)


class MultiDatasetDefaultBatchSampler(SetEpochMixin, BatchSampler):
    """Batches of several datasets, each with its own sampler."""

    def __init__(
        self,
        dataset: ConcatDataset[Any],
        batch_samplers: list[BatchSampler],
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> None:
        if len(dataset.datasets) != len(batch_samplers):
            raise ValueError("The number of batch samplers must match the number of datasets in the ConcatDataset.")
        first = batch_samplers[0]
        super().__init__(dataset, first.batch_size, first.drop_last)  # type: ignore[arg-type]
        self.dataset, self.batch_samplers = dataset, batch_samplers
        self.generator, self.seed = generator, seed

    def set_epoch(self, epoch: int) -> None:
        super().set_epoch(epoch)
        for sampler in self.batch_samplers:
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch)

    @property
    def offsets(self) -> list[int]:
        """Return where the rows of each dataset begin."""
        return [0, *accumulate(len(each) for each in self.dataset.datasets)][:-1]  # type: ignore[arg-type]


class RoundRobinBatchSampler(MultiDatasetDefaultBatchSampler):
    """One batch of each dataset in turn, until one of them has no more."""

    def __iter__(self) -> Iterator[list[int]]:
        if self.generator is not None and self.seed is not None:
            self.generator.manual_seed(self.seed + self.epoch)
        streams = [iter(sampler) for sampler in self.batch_samplers]
        for place in cycle(range(len(streams))):
            rows = next(streams[place], None)
            if rows is None:
                return
            yield [row + self.offsets[place] for row in rows]

    def __len__(self) -> int:
        return min(len(sampler) for sampler in self.batch_samplers) * len(self.batch_samplers)


class ProportionalBatchSampler(MultiDatasetDefaultBatchSampler):
    """Batches of all datasets in random order, as many of each as it has."""

    def __iter__(self) -> Iterator[list[int]]:
        if self.generator is not None and self.seed is not None:
            self.generator.manual_seed(self.seed + self.epoch)
        sizes = [len(sampler) for sampler in self.batch_samplers]
        turns = [place for place, size in enumerate(sizes) for _ in range(size)]
        order = SubsetRandomSampler(turns, generator=self.generator)
        streams = [iter(sampler) for sampler in self.batch_samplers]
        for place in order:
            rows = next(streams[place], None)
            if rows is not None:
                yield [row + self.offsets[place] for row in rows]

    def __len__(self) -> int:
        return sum(len(sampler) for sampler in self.batch_samplers)
