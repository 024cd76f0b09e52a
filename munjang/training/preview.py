"""Describe what a run would do (`--dry-run`)."""

import math
from collections.abc import Sequence

import numpy as np

from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset
from munjang.training.draws import num_draws, prepare_all
from munjang.training.process_group import ProcessGroup
from munjang.training.train import check_evaluations
from munjang.training.trainee import Holder, Trainee


def preview(model: Holder, datasets: Sequence[Dataset], config: TrainConfig) -> str:
    """Read, check and tokenize everything, and describe what training would do with it."""
    processes = ProcessGroup(config.device)
    check_evaluations(model, config.evaluate)
    trainee = Trainee(model, processes.device, config)
    prepared = prepare_all(datasets, trainee, config, None)
    num_weights = sum(parameter.numel() for parameter in trainee.network.parameters())
    lines = [f"model: {model.info()['kind']}, {num_weights / 1e6:.1f} million weights, on {processes.device}"]
    for dataset in prepared:
        examples, tables = dataset.batches.examples, dataset.batches.tables
        lines.append(f"{dataset.name}: {dataset.num_rows:,} rows for {dataset.objective_name}")
        lines += [f"  {note}" for note in examples.notes]
        for name, table in zip(examples.columns or [f"text {n}" for n in range(1, 99)], tables, strict=False):
            longest = int(table.lengths.max(initial=0))
            lines.append(f"  {name}: {table.lengths.mean():.1f} tokens on average, {longest} at most")
        if examples.labels is not None:
            counts = np.bincount(examples.labels)
            names = examples.label_names or tuple(map(str, range(len(counts))))
            lines.append(
                "  labels: " + ", ".join(f"{name} {count:,}" for name, count in zip(names, counts, strict=False))
            )
        lines.append(f"  batches of {dataset.batch_size}, sampler {dataset.sampler_name}")
    per_epoch = num_draws(prepared, config) / config.accumulate
    updates = config.max_steps or max(math.ceil(config.epochs * per_epoch), 1)
    lines.append(f"{updates:,} updates ({config.epochs:g} epochs), highest rate {config.learning_rate:g}")
    lines.append("evaluation: " + (", ".join(config.evaluate) or "none"))
    lines.append(f"output: {config.output or 'none'}")
    return "\n".join(lines)
