"""Run a script with tiny models, small data and three steps: python -m benchmarks.incumbent.small SCRIPT."""

import importlib
import random
import runpy
import sys
from pathlib import Path
from typing import Any

import datasets

from benchmarks.incumbent import stand_ins
from benchmarks.incumbent.data import load_dataset
from munjang.compat import cross_encoder, loading, sentence_transformer
from munjang.compat.modules import transformer
from munjang.errors import CheckpointError

MAX_STEPS = 3


def _select(real: Any) -> Any:
    """Return a `select` for scripts that name rows of datasets of millions: it leaves out rows beyond the end.

    Where that leaves none, it counts from the start again.
    """

    def select(self: Any, indices: Any, *more: Any, **options: Any) -> Any:
        rows = list(indices)
        found = [row for row in rows if row < len(self)] or list(dict.fromkeys(row % len(self) for row in rows))
        return real(self, found, *more, **options)

    return select


def _split(real: Any) -> Any:
    """Return a `train_test_split` that takes a quarter at most for the test."""

    def split(self: Any, test_size: Any = None, *more: Any, **options: Any) -> Any:
        size = min(test_size, len(self) // 4) if isinstance(test_size, int) else test_size
        return real(self, size, *more, **options)

    return split


def _sample(real: Any) -> Any:
    """Return a `random.sample` that takes as many as there are at most."""

    def sample(population: Any, k: int, **options: Any) -> Any:
        return real(population, min(k, len(population)), **options)

    return sample


def main(script: str) -> None:
    """Make the models and data small, then run the script as the main program."""
    datasets.load_dataset = load_dataset
    datasets.Dataset.select = _select(datasets.Dataset.select)
    datasets.Dataset.train_test_split = _split(datasets.Dataset.train_test_split)
    random.sample = _sample(random.sample)
    real = loading.find_folder

    def find_folder(name: Any, organization: Any, *options: Any) -> Path:
        try:
            found = real(name, organization, *options)
            has_weights = any(found.rglob("*.safetensors")) or any(found.rglob("*.bin"))
            return found if has_weights else real(stand_ins.WIDE, organization, *options)
        except CheckpointError:
            is_scorer = "cross-encoder/" in str(name) or "rerank" in str(name)
            tiny = stand_ins.SCORER if is_scorer else stand_ins.WIDE
            print(f"{name}: {tiny} in its place", file=sys.stderr)
            return real(tiny, organization, *options)

    for module in (sentence_transformer, cross_encoder, transformer):
        sys.modules[module.__name__].find_folder = find_folder  # type: ignore[attr-defined]
    trainer = importlib.import_module("munjang.compat.training.trainer").BaseTrainer
    train = trainer.train

    def train_briefly(self: Any, *arguments: Any, **options: Any) -> Any:
        self.args.max_steps, self.args.eval_on_start = MAX_STEPS, False
        self.args.save_steps = self.args.eval_steps = self.args.logging_steps = MAX_STEPS
        self.args.per_device_train_batch_size = min(self.args.per_device_train_batch_size, 16)
        self.args.push_to_hub = False
        return train(self, *arguments, **options)

    trainer.train = train_briefly
    kinds = importlib.import_module("munjang.compat.training.arguments").BaseTrainingArguments
    check = kinds.__post_init__

    def without_half_precision(self: Any) -> None:  # there is no GPU
        self.bf16 = self.fp16 = False
        check(self)

    kinds.__post_init__ = without_half_precision
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
