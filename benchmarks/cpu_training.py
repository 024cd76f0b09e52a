"""Training on this CPU: ours and sentence-transformers' modules and loss, the same batches, taking turns.

    python -m benchmarks.cpu_training STS.tsv [--model FOLDER] [--batch 16] [--steps 360] [--out FILE.json]

STS.tsv has two sentences and a score (STSb train: 5,749 pairs, 360 batches of 16 are an epoch). Cosine regression, the
paper's objective. Prints pairs/s of both and the mean loss of each tenth of the run: without dropout the two agree.
"""

import argparse
import json
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.models import add_model, fill_model
from munjang.bi_encoder import BiEncoder
from munjang.data.reading import read_examples
from munjang.engine.measure import processor
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset, prepare
from munjang.training.draws import draws
from munjang.training.loop import Loop
from munjang.training.process_group import ProcessGroup
from munjang.training.trainee import Trainee

TURN = 12  # steps of one side before the other's turn


class Ours:
    """Our own loop, driven step by step."""

    def __init__(self, folder: Path, rows: Any, batch: int, steps: int, dropout: float) -> None:
        config = TrainConfig(
            batch_size=batch, sampler="random", quiet=True, log_every=1, warmup=0, schedule="constant",
            device="cpu", dropout=dropout,
        )  # fmt: skip
        processes = ProcessGroup("cpu")
        trainee = Trainee(BiEncoder.load(folder, "cpu", "float32"), processes.device, config)
        prepared = [prepare(Dataset(data=rows, objective="regression"), trainee, config, None)]
        self.loop = Loop(trainee, prepared, processes, config, steps)
        self.order = [draw.rows for draw, _ in zip(draws(prepared, config), range(steps), strict=False)]
        self.losses: list[float] = []
        self.loop.on_log = lambda line: self.losses.append(line["loss"])
        self.stream = self.loop._work(steps)

    def step(self, number: int) -> None:
        self.loop._update([next(self.stream)])


class Theirs:
    """sentence-transformers' modules and loss, with the optimizer and clipping of its trainer."""

    def __init__(self, folder: Path, rows: Any, order: list[Any], dropout: float) -> None:
        from sentence_transformers import SentenceTransformer, losses

        self.model = SentenceTransformer(str(folder), device="cpu")
        self.model.train()
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = dropout
            elif hasattr(module, "dropout_prob"):
                module.dropout_prob = dropout
        self.loss = losses.CosineSimilarityLoss(self.model)
        self.adam = torch.optim.AdamW(self.model.parameters(), 2e-5)
        self.rows, self.order, self.losses = rows, order, []

    def step(self, number: int) -> None:
        at = self.order[number]
        features = [self.model.tokenize([column[row] for row in at.tolist()]) for column in self.rows.texts]
        loss = self.loss(features, torch.from_numpy(self.rows.scores[at]).float())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step()
        self.adam.zero_grad()
        self.losses.append(float(loss))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    add_model(parser)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=360)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    fill_model(options)
    warnings.simplefilter("ignore")
    rows = read_examples(options.data, target="scores")
    ours = Ours(options.model, rows, options.batch, options.steps, options.dropout)
    theirs = Theirs(options.model, rows, ours.order, options.dropout)
    seconds = {"munjang": [], "sentence-transformers": []}
    for start in range(0, options.steps, TURN):
        for name, side in (("munjang", ours), ("sentence-transformers", theirs)):
            began = time.perf_counter()
            for number in range(start, min(start + TURN, options.steps)):
                side.step(number)
            seconds[name].append(time.perf_counter() - began)
    ours.loop._settle(0)
    full = [options.batch * TURN / np.array(times[1:-1] or times) for times in seconds.values()]
    rates = dict(zip(seconds, full, strict=True))
    tenth = max(options.steps // 10, 1)
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": processor(torch.device("cpu")),
        "command": f"python -m benchmarks.cpu_training {options.data.name} --batch {options.batch} "
        f"--steps {options.steps} --dropout {options.dropout}",
        "pairs_per_s": {name: {"best": max(each), "median": float(np.median(each))} for name, each in rates.items()},
        "times": {
            "median of turns": float(np.median(rates["munjang"] / rates["sentence-transformers"])),
            "best": max(rates["munjang"]) / max(rates["sentence-transformers"]),
            "whole": sum(seconds["sentence-transformers"]) / sum(seconds["munjang"]),
        },
        "losses": {
            name: [float(np.mean(losses[at : at + tenth])) for at in range(0, options.steps, tenth)]
            for name, losses in (("munjang", ours.losses), ("sentence-transformers", theirs.losses))
        },
    }
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
