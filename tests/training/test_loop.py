"""The loop: evaluations and the best of them, the moving average, updates of several batches."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from munjang import BiEncoder, train
from tests.training.made import examples
from tests.training.runs import TEXTS, close, pairs, quiet, read_log, weights, write_sts


@pytest.fixture
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu")


def test_the_moving_average_is_what_is_saved(tiny_bert: Path, tmp_path: Path) -> None:
    """Three updates, by hand from the weights after each: the decay is min(0.3, (1 + n) / (10 + n))."""
    settings: dict[str, Any] = {"learning_rate": 1e-2, "schedule": "constant", "warmup": 0, "dropout": 0.0}
    steps = [weights(BiEncoder.load(tiny_bert, "cpu"))]
    for number in (1, 2, 3):
        each = BiEncoder.load(tiny_bert, "cpu")
        train(each, examples(16), "regression", quiet(max_steps=number, batch_size=4, **settings))
        steps.append(weights(each))
    wanted = steps[0]
    for number, after in enumerate(steps[1:], 1):
        decay = min(0.3, (1 + number) / (10 + number))
        wanted = {name: decay * wanted[name] + (1 - decay) * after[name] for name in wanted}
    output, averaged = tmp_path / "model", BiEncoder.load(tiny_bert, "cpu")
    config = quiet(max_steps=3, batch_size=4, ema=0.3, output=str(output), **settings)
    train(averaged, examples(16), "regression", config)
    found = weights(averaged)
    assert max(float((found[name] - wanted[name]).abs().max()) for name in wanted) < 1e-6
    assert max(float((found[name] - steps[3][name]).abs().max()) for name in wanted) > 1e-4
    assert close(BiEncoder.load(output, "cpu").encode(TEXTS), averaged.encode(TEXTS))


def test_stopping_early_and_the_best_checkpoint(model: BiEncoder, tmp_path: Path) -> None:
    """So high a rate only destroys: the first evaluation stays the best, and its weights are the model."""
    dev = write_sts(tmp_path / "dev.tsv")
    output = tmp_path / "model"
    settings: dict[str, Any] = {"learning_rate": 0.5, "warmup": 1.0, "schedule": "constant", "seed": 1}
    config = quiet(
        output=str(output), evaluate=(str(dev),), max_steps=40, evaluate_every=1, patience=3, batch_size=6, **settings
    )
    train(model, pairs(12), "in_batch", config)
    evaluations = [line for line in read_log(output) if "evaluation" in line]
    scores = [line["evaluation"]["main"] for line in evaluations]
    best = int(np.argmax(scores))
    assert len(scores) == best + 1 + 3 < 40
    assert [line["step"] for line in evaluations] == list(range(1, len(scores) + 1))
    from munjang import evaluate

    report = evaluate(BiEncoder.load(output, "cpu"), str(dev))
    assert report.metrics[report.main] == pytest.approx(scores[best], abs=1e-9)
    assert report.metrics[report.main] > scores[-1]


def test_evaluate_every(model: BiEncoder, tmp_path: Path) -> None:
    """By default after each epoch of 3 updates, and at the end."""
    dev, output = write_sts(tmp_path / "dev.tsv"), tmp_path / "model"
    train(model, pairs(12), "in_batch", quiet(output=str(output), evaluate=(str(dev),), max_steps=7, batch_size=4))
    assert [line["step"] for line in read_log(output) if "evaluation" in line] == [3, 6, 7]
    assert all(line["evaluation"]["name"] == "dev" for line in read_log(output) if "evaluation" in line)


def test_two_batches_of_an_update_are_one_twice_as_large(tiny_bert: Path) -> None:
    """Without dropout, of an objective whose loss is a mean over examples: one update of 8 rows."""
    found = []
    for size, accumulate in ((8, 1), (4, 2), (2, 4)):
        each = BiEncoder.load(tiny_bert, "cpu")
        config = quiet(batch_size=size, accumulate=accumulate, max_steps=1, learning_rate=1e-5, dropout=0.0)
        train(each, examples(8), "classification", config)
        found.append(weights(each))
    # Adam's first update is as large as the rate wherever the gradient is not nearly zero
    moved = max(float((found[0][name] - value).abs().max()) for name, value in _begin(tiny_bert).items())
    assert moved > 9e-6
    for other in found:
        for name, value in other.items():
            if name.endswith("qkv.bias"):
                value[32:64] = 0  # a key's bias changes no attention: its gradient is rounding noise
    for other in found[1:]:
        assert max(float((other[name] - found[0][name]).abs().max()) for name in other) < 1e-6


def _begin(folder: Path) -> dict[str, torch.Tensor]:
    return weights(BiEncoder.load(folder, "cpu"))
