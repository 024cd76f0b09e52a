"""Helpers of the tests of whole runs: quiet settings, files of examples, toy problems, the log."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.training.config import TrainConfig
from tests.training.made import sentences

TEXTS = sentences(12, 40)  # what trained models are compared on


def quiet(**settings: Any) -> TrainConfig:
    """A run on the CPU that says nothing."""
    return TrainConfig(**{"device": "cpu", "quiet": True, "log_every": 1, **settings})


def write_tsv(path: Path, header: str, rows: Iterable[Iterable[object]]) -> Path:
    """A file of examples; the header's names stand between spaces."""
    lines = ["\t".join(header.split()), *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def pairs(count: int, columns: int = 2) -> Examples:
    """Different texts that have nothing in common; which belong together can only be learned."""
    return Examples("pairs", tuple(sentences(count, 20 + seed) for seed in range(columns)))


def write_sts(path: Path, count: int = 16) -> Path:
    """Pairs of texts that no training example holds, with scores."""
    scores = np.random.default_rng(5).random(count)
    return write_tsv(
        path, "sentence1 sentence2 score", zip(sentences(count, 30), sentences(count, 31), scores, strict=True)
    )


def found_share(model: BiEncoder, rows: Examples) -> float:
    """For how many first texts the second one of its own row is the closest of all."""
    first, second = (model.encode(column, normalize=True) for column in rows.texts[:2])
    return float(((first @ second.T).argmax(1) == np.arange(len(rows))).mean())


def read_log(output: Path) -> list[dict[str, Any]]:
    """The log of the run that made a model."""
    lines = (output.with_name(output.name + ".training") / "log.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def losses(output: Path) -> list[float]:
    """Of every line that holds one."""
    return [line["loss"] for line in read_log(output) if "loss" in line]


def close(found: Any, wanted: Any, within: float = 1e-4) -> bool:
    """Vectors or scores of two models; the last bits depend on where in memory their weights lie."""
    return found.shape == wanted.shape and float(np.abs(found - wanted).max()) < within


def alike(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Weights of two runs; where a gradient is rounding noise, Adam makes steps of it, so that the mean counts."""
    return found.keys() == wanted.keys() and all(
        float((found[name] - wanted[name]).abs().mean()) < 1e-5 for name in wanted
    )


def weights(model: BiEncoder | CrossEncoder) -> dict[str, torch.Tensor]:
    """A copy of every parameter by name."""
    return {name: value.detach().clone() for name, value in model.network.named_parameters()}


def changed(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> set[str]:
    """Names of the parameters that are others now."""
    return {name for name in before if not torch.equal(before[name], after[name])}
