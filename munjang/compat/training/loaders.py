"""The batches of a trainer: a sampler for each dataset, one over all of them, and their loaders."""

from functools import partial
from typing import Any

import torch
from datasets import Dataset, DatasetDict, IterableDataset
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, RandomSampler

from munjang.compat.training.samplers import (
    BatchSamplers,
    DefaultBatchSampler,
    GroupByLabelBatchSampler,
    MultiDatasetBatchSamplers,
    NoDuplicatesBatchSampler,
    ProportionalBatchSampler,
    RoundRobinBatchSampler,
)


class Loaders:
    """The maker of batches; a subclass may choose other samplers."""

    args: Any
    data_collator: Any
    train_dataset: Any
    eval_dataset: Any
    evaluator: Any
    accelerator: Any

    def get_batch_sampler(
        self,
        dataset: Any,
        batch_size: int,
        drop_last: bool,
        valid_label_columns: list[str] | None = None,
        generator: torch.Generator | None = None,
        seed: int = 0,
    ) -> BatchSampler | None:
        """Return the sampler of a dataset."""
        chosen = self.args.batch_sampler
        options: dict[str, Any] = {
            "batch_size": batch_size,
            "drop_last": drop_last,
            "valid_label_columns": valid_label_columns,
            "generator": generator,
            "seed": seed,
        }
        if not isinstance(chosen, BatchSamplers) and callable(chosen):
            made: BatchSampler = chosen(dataset, **options)
            return made
        if isinstance(dataset, IterableDataset):
            return None
        if chosen in (BatchSamplers.NO_DUPLICATES, BatchSamplers.NO_DUPLICATES_HASHED):
            is_hashed = chosen == BatchSamplers.NO_DUPLICATES_HASHED
            return NoDuplicatesBatchSampler(dataset, precompute_hashes=is_hashed, **options)
        if chosen == BatchSamplers.GROUP_BY_LABEL:
            return GroupByLabelBatchSampler(dataset, **options)
        return DefaultBatchSampler(RandomSampler(dataset, generator=generator), **options)

    def get_multi_dataset_batch_sampler(
        self, dataset: Any, batch_samplers: list[Any], generator: torch.Generator | None = None, seed: int | None = 0
    ) -> BatchSampler:
        """Return the sampler of several datasets."""
        chosen = self.args.multi_dataset_batch_sampler
        if isinstance(chosen, MultiDatasetBatchSamplers):
            is_round = chosen == MultiDatasetBatchSamplers.ROUND_ROBIN
            chosen = RoundRobinBatchSampler if is_round else ProportionalBatchSampler
        made: BatchSampler = chosen(dataset, batch_samplers=batch_samplers, generator=generator, seed=seed)
        return made

    def _build_dataloader(self, dataset: Any, batch_size: int, dataset_kind: str) -> DataLoader[Any]:
        args, generator = self.args, torch.Generator()
        generator.manual_seed(args.seed)
        options: dict[str, Any] = {
            "collate_fn": self.data_collator,
            "num_workers": args.dataloader_num_workers,
            "pin_memory": args.dataloader_pin_memory,
            "persistent_workers": args.dataloader_persistent_workers,
            "prefetch_factor": args.dataloader_prefetch_factor,
        }
        sampled = partial(
            self.get_batch_sampler,
            batch_size=batch_size,
            drop_last=args.dataloader_drop_last,
            valid_label_columns=getattr(self.data_collator, "valid_label_columns", None),
            generator=generator,
            seed=args.seed,
        )
        if isinstance(dataset, IterableDataset):
            return DataLoader(dataset, batch_size=batch_size, drop_last=args.dataloader_drop_last, **options)
        if isinstance(dataset, DatasetDict):
            samplers = [sampled(each) for each in dataset.values()]
            whole: Any = ConcatDataset(list(dataset.values()))
            mixed = self.get_multi_dataset_batch_sampler(whole, samplers, generator, args.seed)
            return DataLoader(whole, batch_sampler=mixed, **options)
        if isinstance(dataset, Dataset):
            return DataLoader(dataset, batch_sampler=sampled(dataset), **options)
        raise ValueError(
            f"Unsupported `{dataset_kind}_dataset` type. "
            f"Use a Dataset, DatasetDict, or IterableDataset for {dataset_kind}."
        )

    def get_train_dataloader(self) -> Any:
        """Return the batches to train on."""
        if self.train_dataset is None:
            raise ValueError(f"Training requires specifying a train_dataset to the {type(self).__name__}.")
        self.accelerator.even_batches = False
        loader = self._build_dataloader(self.train_dataset, self.args.train_batch_size, "train")
        self._train_dataloader = self.accelerator.prepare(loader)
        return self._train_dataloader

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """Return the batches to evaluate on."""
        if eval_dataset is None and self.eval_dataset is None:
            if self.evaluator is not None:
                return DataLoader([])  # type: ignore[arg-type]
            raise ValueError(f"Evaluation requires specifying an eval_dataset to the {type(self).__name__}.")
        chosen = self.eval_dataset if eval_dataset is None else eval_dataset
        chosen = self.eval_dataset[chosen] if isinstance(chosen, str) else chosen
        self.accelerator.even_batches = True
        return self.accelerator.prepare(self._build_dataloader(chosen, self.args.eval_batch_size, "eval"))

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """Return the batches to test on."""
        self.accelerator.even_batches = True
        return self.accelerator.prepare(self._build_dataloader(test_dataset, self.args.eval_batch_size, "test"))
