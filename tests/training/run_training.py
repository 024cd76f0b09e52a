"""A small training run, here or in a process of its own which can be killed: python -m ... MODEL OUT

DEV names a file of scored pairs. KILL_AT=12 ends the process after the log has its 12th line, KILL_IN_SAVE=3 in the
middle of the third checkpoint; without warning, as `kill -9` does.
"""

import os
import signal
import sys
from pathlib import Path

import torch

from munjang.bi_encoder import BiEncoder
from munjang.training import run
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset
from munjang.training.train import train
from tests.training.made import examples


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train_small(model: Path, output: Path, dev: Path, resume: bool = False) -> None:
    """Three epochs over two datasets with checkpoints and evaluations on the way."""
    config = TrainConfig(
        *(),
        output=str(output),
        epochs=3,
        batch_size=5,
        learning_rate=1e-3,
        ema=0.9,
        log_every=1,
        save_every=4,
        evaluate=(str(dev),),
        evaluate_every=6,
        patience=50,
        accumulate=2,
        device="cpu",
        quiet=True,
        resume=resume,
        avoid=(),
        head_rate=1e-2,
    )
    rows = examples(31)
    datasets = [
        Dataset(data=rows, objective="classification"),
        Dataset(data=rows, objective="in_batch", batch_size=7),
    ]
    train(BiEncoder.load(model, "cpu"), datasets, config=config)


def main(model: str, output: str) -> None:
    torch.set_num_threads(1)
    log, save, counted = run.Run.log, run._save_tensors, {"lines": 0, "saves": 0}

    def logging(self: run.Run, line: dict[str, object]) -> None:
        log(self, line)
        counted["lines"] += 1
        if counted["lines"] == int(os.environ.get("KILL_AT", "0")):
            die()

    def saving(tensors: dict[str, torch.Tensor], path: Path) -> None:
        counted["saves"] += 1
        save(tensors, path)
        if counted["saves"] == int(os.environ.get("KILL_IN_SAVE", "0")):
            die()

    run.Run.log, run._save_tensors = logging, saving
    train_small(Path(model), Path(output), Path(os.environ["DEV"]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
