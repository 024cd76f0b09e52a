"""A by-product: three labels (entailment, neutral, contradiction) on the layers of the re-ranker.

Measured on KLUE-NLI's dev set and on XNLI-ko, as far as DATA/nli has klue-nli-dev, xnli-ko-dev and xnli-ko-test;
nothing is chosen on them, and no row that shares a sentence with one is trained on.
"""

import json
from pathlib import Path

import numpy as np
import torch

from munjang import CrossEncoder, Dataset, TrainConfig
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.types import Ints
from recipes.models.sources import file, reported

LABELS = ("entailment", "neutral", "contradiction")
TRAINED_ON = ("klue-nli-train", "snli-train", "mnli-train")
MEASURED_ON = ("klue-nli-dev", "xnli-ko-dev", "xnli-ko-test")
CONFIG = TrainConfig(
    batch_size=128, learning_rate=1e-4, schedule="cosine", mixing="temperature", ema=0.995, quiet=True, log_every=100
)


def new_nli(start: Path, device: str) -> CrossEncoder:
    """Put a new head of three labels on a cross-encoder's layers."""
    torch.manual_seed(29)
    return CrossEncoder.create(start, num_labels=len(LABELS), device=device, dtype="float32")


def nli_data(data: Path) -> list[Dataset]:
    """Read the training sets without rows that share a sentence with what is measured."""
    measured = [_read(data, name) for name in MEASURED_ON if file(data, f"nli/{name}").exists()]
    kept = [drop_overlap(_read(data, name), [*reported(data), *measured]) for name in TRAINED_ON]
    return [Dataset(data=each, objective="cross_entropy", sampler="random") for each in kept]


def measure_nli(model: CrossEncoder, data: Path, out: Path) -> None:
    """Write the accuracy on each set."""
    accuracy = {}
    for name in MEASURED_ON:
        if file(data, f"nli/{name}").exists():
            examples = _read(data, name)
            assert examples.labels is not None
            logits_BC = model.predict(list(zip(*examples.texts, strict=True)), activation="Identity", progress=False)
            accuracy[name] = round(100 * float((logits_BC.argmax(1) == examples.labels).mean()), 2)
            print(f"{name}: {accuracy[name]} % of {len(examples):,}", flush=True)
    out.write_text(json.dumps(accuracy) + "\n", encoding="utf-8")


def _read(data: Path, name: str) -> Examples:
    """Read a set with our numbers of the labels."""
    found = read_examples(file(data, f"nli/{name}"), texts=("premise", "hypothesis"), target="labels")
    assert found.labels is not None
    number_of: Ints = np.array([LABELS.index(label) for label in found.label_names])
    return Examples(name, found.texts, found.columns, labels=number_of[found.labels], label_names=LABELS)
