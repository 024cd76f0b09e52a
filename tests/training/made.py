"""Helpers of the tests of training: a tiny model, examples of our own, and a step without a loop."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset, prepare
from munjang.training.micro_batches import split
from munjang.training.process_group import ProcessGroup
from munjang.training.step import Gradients, Step
from munjang.training.trainee import Trainee
from tests.texts import ENGLISH, KOREAN

TEXTS = [text for text in dict.fromkeys([*ENGLISH, *KOREAN]) if text.strip()]


def sentences(count: int, seed: int = 0) -> list[str]:
    """Texts of different lengths, all different."""
    random = np.random.default_rng(seed)
    words = sorted({word for text in TEXTS for word in text.split()})
    lengths = random.integers(2, 12, count)
    return [f"{' '.join(random.choice(words, length))} {place}" for place, length in enumerate(lengths)]


def examples(count: int, columns: int = 2, labels: int = 3) -> Examples:
    """Rows with labels and scores."""
    random = np.random.default_rng(1)
    return Examples(
        "made up",
        tuple(sentences(count, seed) for seed in range(columns)),
        labels=random.integers(0, labels, count),
        scores=random.random(count),
    )


def gradient(
    folder: Path,
    objective: str,
    rows: Examples,
    batch_tokens: int = 100_000,
    is_cached: bool | None = None,
    device: str = "cpu",
    options: dict[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
    **settings: Any,
) -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradients of one batch of all rows."""
    processes = ProcessGroup(device)
    config = TrainConfig(batch_size=len(rows), **settings)
    kind = CrossEncoder if objective.startswith("cross") else BiEncoder
    model: Any = kind.load(folder, device, "float32")
    trainee = Trainee(model, processes.device, config)
    dataset = prepare(Dataset(data=rows, objective=objective, options=options or {}), trainee, config, None)
    batch = dataset.batches(np.arange(len(rows)), processes.rank, processes.world_size, np.random.default_rng(3))
    cut = split(batch, dataset.objective.is_separable, batch_tokens, processes.device)
    step = Step(trainee.network, processes, trainee.shapes, seed=5, dtype=dtype, is_cached=is_cached)
    found = step(1, cut, dataset.objective)
    gradients = Gradients(trainee.network, [dataset.objective], processes)
    loss = gradients.finish([gradients.take(*found)])
    modules = {"network": trainee.network, "objective": dataset.objective}
    return float(loss), {
        f"{kind}.{name}": parameter.grad.clone()
        for kind, module in modules.items()
        for name, parameter in module.named_parameters()
        if parameter.grad is not None
    }


def difference(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> float:
    """Largest difference of any component, relative to the length of all gradients together."""
    assert found.keys() == wanted.keys()
    length = torch.stack([value.norm() for value in wanted.values()]).norm()
    return max(float((found[name] - wanted[name]).abs().max() / length) for name in wanted)
