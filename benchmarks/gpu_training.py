"""Training on a GPU, BERT-base shape, in-batch negatives: ours and sentence-transformers' modules and loss, in one run.

    python -u -m benchmarks.gpu_training MODEL TEXTS OUT.json [--batch 512] [--steps 40] [--memory 512 8192]
        [--curve-model FOLDER --curve-pairs PAIRS.tsv [--curve 100]]

MODEL gives the tokenizer; TEXTS is one sentence a line, neighbours are pairs; weights are drawn. Prints the pairs/s
of both, peak memory by batch size, and loss curves over the same batches: ours in bf16 without padding, theirs padded
in fp32; those begin from real weights and real pairs, as drawn ones learn nothing in so few updates. A picture of both
is written beside OUT.json.
"""

import argparse
import gc
import json
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.chart import Line, lines
from munjang.bi_encoder import BiEncoder
from munjang.data.examples import Examples
from munjang.data.reading import read_examples
from munjang.training.config import TrainConfig
from munjang.training.datasets import Dataset, prepare
from munjang.training.draws import draws
from munjang.training.loop import Loop
from munjang.training.process_group import ProcessGroup
from munjang.training.trainee import Trainee

os.environ["HF_HUB_OFFLINE"] = "1"
WARM = 6  # steps before the clock starts
TEMPERATURE = 0.05  # sentence-transformers' scale of 20


def make_base(tokenizer: Path, folder: Path, layers: int) -> Path:
    """A BERT-base with drawn weights."""
    import transformers

    torch.manual_seed(1)
    fast = transformers.AutoTokenizer.from_pretrained(tokenizer)
    config = transformers.BertConfig(vocab_size=len(fast), num_hidden_layers=layers)
    transformers.BertModel(config).save_pretrained(folder)
    fast.model_max_length = 128
    fast.save_pretrained(folder)
    return folder


class Ours:
    """Our own loop, driven step by step."""

    def __init__(self, folder: Path, pairs: Examples, batch: int, num_updates: int, **settings: Any) -> None:
        config = TrainConfig(
            batch_size=batch, sampler="random", quiet=True, log_every=1, warmup=0, schedule="constant", **settings
        )
        processes = ProcessGroup(None)
        model = BiEncoder.load(folder, str(processes.device), "float32")
        self.trainee = Trainee(model, processes.device, config)
        dataset = Dataset(data=pairs, objective="in_batch", options={"temperature": TEMPERATURE})
        self.prepared = [prepare(dataset, self.trainee, config, None)]
        self.loop = Loop(self.trainee, self.prepared, processes, config, num_updates)
        self.losses: list[float] = []
        self.loop.on_log = lambda line: self.losses.append(line["loss"])
        self.order = [draw.rows for draw, _ in zip(draws(self.prepared, config), range(num_updates), strict=False)]
        self.stream = self.loop._split_batches(num_updates)

    def step(self) -> None:
        self.loop._update([next(self.stream)])


class Theirs:
    """sentence-transformers' modules and loss, fed by a DataLoader of eight workers, as its trainer does."""

    def __init__(self, folder: Path, pairs: Examples, order: list[Any], dtype: str) -> None:
        from sentence_transformers import SentenceTransformer, losses, models
        from torch.utils.data import DataLoader

        width = json.loads((folder / "config.json").read_text(encoding="utf-8"))["hidden_size"]
        transformer = models.Transformer(str(folder), max_seq_length=128)
        self.model = SentenceTransformer(modules=[transformer, models.Pooling(width, "mean")], device=DEVICE)
        self.model.train()
        self.loss = losses.MultipleNegativesRankingLoss(self.model)
        self.adam = torch.optim.AdamW(self.model.parameters(), 2e-5, fused=DEVICE == "cuda")
        self.dtype, self.losses = dtype, []
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        texts = pairs.texts

        def collate(rows: list[Any]) -> Any:
            return [self.model.tokenize([column[row] for row in rows[0].tolist()]) for column in texts]

        workers = 8 if DEVICE == "cuda" else 0
        self.stream = iter(
            DataLoader(
                order,
                batch_size=1,
                collate_fn=collate,
                num_workers=workers,
                multiprocessing_context="fork" if workers else None,
            )
        )

    def step(self) -> None:
        features = [
            {key: value.to(DEVICE, non_blocking=True) for key, value in each.items() if hasattr(value, "to")}
            for each in next(self.stream)
        ]
        with torch.autocast(DEVICE, torch.bfloat16, enabled=self.dtype == "bfloat16"):
            loss = self.loss(features, None)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.losses.append(loss.detach())


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def rate(side: Any, batch: int, steps: int) -> dict[str, float]:
    """Pairs a second after a few steps, and the most memory it took."""
    for _ in range(WARM):
        side.step()
    _wait()
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    for _ in range(steps):
        side.step()
    _wait()
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0
    return {"pairs_per_s": batch * steps / seconds, "ms_a_step": 1000 * seconds / steps, "peak_gib": peak}


def their_rate(folder: Path, pairs: Examples, order: list[Any], dtype: str, options: Any) -> dict[str, float]:
    """Measure the rate of sentence-transformers."""
    return rate(Theirs(folder, pairs, order, dtype), options.batch, options.steps)


def their_losses(folder: Path, pairs: Examples, order: list[Any], seed: int) -> list[float]:
    """Return the losses of sentence-transformers, padded and in fp32."""
    torch.manual_seed(seed)
    theirs = Theirs(folder, pairs, order, "float32")
    for _ in order:
        theirs.step()
    return [float(loss) for loss in theirs.losses]


def apart(function: Any, *given: Any) -> Any:
    """In a process of its own: a DataLoader forks, which a process that has used a GPU and threads does not survive."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *given).result()


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--curve", type=int, default=100, help="updates of the loss curves")
    parser.add_argument("--curve-model", type=Path, help="BERT folder that the loss curves begin from")
    parser.add_argument("--curve-pairs", type=Path, help="table whose first two texts are a pair")
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"], choices=["bfloat16", "float32"])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--memory", type=int, nargs="*", default=[], help="batch sizes whose peak memory is measured")
    options = parser.parse_args()
    texts = options.texts.read_text(encoding="utf-8").splitlines()
    pairs = Examples(options.texts.name, (texts[0::2][: len(texts) // 2], texts[1::2]))
    record: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat(), "torch": torch.__version__}
    record["device"] = torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"
    with tempfile.TemporaryDirectory() as scratch:
        folder = make_base(options.model, Path(scratch) / "base", options.layers)
        total = WARM + options.steps
        for name in options.dtypes:
            settings = {"dtype": name}
            ours = Ours(folder, pairs, options.batch, total, **settings)
            record[f"ours {name}"] = rate(ours, options.batch, options.steps)
            print(name, "ours", record[f"ours {name}"], flush=True)
            order = ours.order
            del ours
        for name in options.dtypes:
            record[f"sentence-transformers {name}"] = apart(their_rate, folder, pairs, order, name, options)
            print(name, "theirs", record[f"sentence-transformers {name}"], flush=True)
        record["times"] = record["ours bfloat16"]["pairs_per_s"] / max(
            record[f"sentence-transformers {name}"]["pairs_per_s"] for name in options.dtypes
        )
        print("times the better of theirs:", round(record["times"], 2), flush=True)
        record["memory"] = memory(folder, pairs, options.memory)
    if options.curve_model:
        real = Examples("pairs", read_examples(options.curve_pairs).texts[:2])
        record["curves"] = curves(options.curve_model, real, options.curve)
    options.out.write_text(json.dumps(record, indent=1))
    options.out.with_suffix(".svg").write_text(picture(record), encoding="utf-8")


def memory(folder: Path, pairs: Examples, sizes: list[int]) -> dict[str, Any]:
    """Peak memory of one update with the gradient cache, by batch size."""
    found = {}
    for size in sizes:
        ours = Ours(folder, pairs, size, 3, batch_tokens=16384, gradient_cache=True)
        for _ in range(3):
            if DEVICE == "cuda":
                torch.cuda.reset_peak_memory_stats()
            ours.step()
        _wait()
        found[str(size)] = torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0
        print("batch", size, "peak GiB", found[str(size)], flush=True)
        del ours
        gc.collect()  # its parts hold each other
    return found


def picture(record: dict[str, Any]) -> str:
    """Memory by batch size and the loss curves, smoothed over ten updates."""
    panels: dict[str, dict[str, Line]] = {}
    if record["memory"]:
        sizes = [(float(size), peak) for size, peak in record["memory"].items()]
        panels["peak GiB of an update by batch size, gradient cache"] = {"munjang bfloat16": sizes}
    if record.get("curves"):
        panels["loss by update, batches of 64"] = {
            name.replace("ours", "munjang"): [
                (at, float(np.mean(losses[max(at - 9, 0) : at + 1]))) for at in range(len(losses))
            ]
            for name, losses in record["curves"].items()
        }
    return lines(f"Training on {record['device']}", panels)


def curves(folder: Path, pairs: Examples, steps: int) -> dict[str, list[float]]:
    """Losses over the same batches of 64, ours in two types and two seeds of theirs."""
    found = {}
    for name, settings in (("ours bfloat16", {"dtype": "bfloat16"}), ("ours float32", {"dtype": "float32"})):
        ours = Ours(folder, pairs, 64, steps, **settings)
        for _ in range(steps):
            ours.step()
        ours.loop._settle(0)
        found[name] = ours.losses
    for seed in (1, 2):
        found[f"padded fp32, seed {seed}"] = apart(their_losses, folder, pairs, ours.order, seed)
    for name, losses in found.items():
        print(name, [round(float(np.mean(losses[at : at + 10])), 4) for at in range(0, steps, 10)], flush=True)
    return found


if __name__ == "__main__":
    main()
