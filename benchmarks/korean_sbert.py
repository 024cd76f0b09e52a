"""The Sentence-BERT paper's story on Korean: what training adds to a plain encoder, measured on KorSTS test.

    python -u -m benchmarks.korean_sbert MODEL DATA OUT.json [--seeds 1 2 3] [--workers 4] [--only NAME...]

MODEL is a plain Korean encoder (an ALBERT here); DATA a folder with nli/klue-nli-train.tsv[.xz] and
sts/korsts-{train,dev,test}.tsv. Training rows that share a sentence with KorSTS dev or test are dropped. Every line is
the mean over seeds of Spearman's correlation x 100 between cosine and human score; docs/results.md holds the outcome.
"""

import argparse
import json
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang import BiEncoder, CrossEncoder, TrainConfig, evaluate, train
from munjang.data.examples import Examples
from munjang.data.nli import triplets_of
from munjang.data.reading import drop_overlap, read_examples

CONCATENATIONS = ("u,v", "|u-v|", "u*v", "|u-v|,u*v", "u,v,u*v", "u,v,|u-v|", "u,v,|u-v|,u*v")
# the new softmax layer has 780 updates an epoch, the paper's had 60,000: it needs a rate of its own
NLI = TrainConfig(epochs=2, batch_size=32, learning_rate=2e-5, head_rate=1e-3, quiet=True)
STS = TrainConfig(epochs=4, batch_size=32, learning_rate=5e-5, quiet=True)


@dataclass(frozen=True)
class Stage:
    """One training run of an experiment."""

    data: str
    objective: str
    config: TrainConfig
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """Stages one after the other, from the plain encoder."""

    name: str
    stages: tuple[Stage, ...] = ()
    pooling: str = "mean"
    is_cross: bool = False


def experiments(sts: Stage) -> list[Experiment]:
    """All lines of the table; `sts` is the second stage."""
    nli = Stage("nli", "classification", NLI)
    lines = [
        Experiment("untrained, CLS", pooling="cls"),
        Experiment("untrained, mean"),
        Experiment("untrained, max", pooling="max"),
        Experiment("NLI", (nli,)),
        Experiment("STS", (sts,)),
        Experiment("NLI then STS", (nli, sts)),
        Experiment("NLI, CLS pooling", (nli,), "cls"),
        Experiment("NLI, max pooling", (nli,), "max"),
        Experiment("STS, CLS pooling", (sts,), "cls"),
        Experiment("STS, max pooling", (sts,), "max"),
    ]
    lines += [Experiment(f"NLI, ({each})", (replace(nli, options={"concatenation": each}),)) for each in CONCATENATIONS]
    triplet = Stage("triplets", "triplet", NLI)
    cross_sts = replace(sts, objective="cross_bce")
    return [
        *lines,
        Experiment("NLI triplets, triplet objective", (triplet,)),
        Experiment("NLI triplets, in-batch negatives", (in_batch(),)),
        Experiment("NLI in-batch then STS", (in_batch(), sts)),
        Experiment("cross-encoder, STS", (cross_sts,), is_cross=True),
        cross_encoder(sts),
    ]


def cross_encoder(sts: Stage) -> Experiment:
    """The best of the lines."""
    nli = Stage("nli", "cross_entropy", replace(NLI, epochs=1))
    return Experiment("cross-encoder, NLI then STS", (nli, replace(sts, objective="cross_bce")), is_cross=True)


def in_batch(epochs: int = 3, batch_size: int = 64) -> Stage:
    """NLI as today's models learn it."""
    config = replace(NLI, epochs=epochs, batch_size=batch_size, learning_rate=5e-5)
    return Stage("triplets", "in_batch", config)


def sweep() -> list[Experiment]:
    """Return the settings that were tried, by KorSTS dev and one seed: --sweep."""
    nli, both = Stage("nli", "classification", NLI), "sts+klue"
    ranks, squares = Stage(both, "cosent", STS), Stage(both, "regression", STS)
    long = replace(ranks, config=replace(STS, epochs=8))
    fast = replace(ranks, config=replace(STS, learning_rate=1e-4))
    seconds = {"squares": squares, "ranks": ranks, "ranks, 8 epochs": long, "ranks, 1e-4": fast}
    seconds["ranks, KorSTS alone"] = replace(ranks, data="sts")
    seconds["AnglE"] = replace(ranks, objective="angle")
    seconds["ranks, dropout"] = replace(ranks, config=replace(STS, dropout=0.1))
    lines = [Experiment(f"STS: {name}", (seconds[name],)) for name in ("squares", "ranks", "ranks, 8 epochs")]
    lines += [Experiment(f"NLI by softmax, STS: {name}", (nli, seconds[name])) for name in ("squares", "ranks")]
    lines += [Experiment(f"NLI in batches, STS: {name}", (in_batch(), each)) for name, each in seconds.items()]
    return [*lines, Experiment("NLI in batches of 128, 6 epochs, STS: ranks", (in_batch(6, 128), ranks))]


def read(data: Path) -> dict[str, Examples]:
    """Training and test sets, without rows in common."""
    tests = [read_examples(data / f"sts/korsts-{part}.tsv", target="scores") for part in ("dev", "test")]
    nli = _file(data, "nli/klue-nli-train.tsv")
    found = {
        "nli": drop_overlap(read_examples(nli, target="labels"), tests),
        "sts": drop_overlap(read_examples(data / "sts/korsts-train.tsv", target="scores"), tests),
        "dev": tests[0],
        "test": tests[1],
    }
    found["triplets"] = triplets_of(found["nli"])
    klue = drop_overlap(
        read_examples(_file(data, "sts/klue-sts-train.tsv"), target="scores", score_range=(0, 5)), tests
    )
    pairs = (found["sts"], klue)
    texts = tuple([text for part in pairs for text in part.texts[column]] for column in (0, 1))
    scores = np.concatenate([part.scores for part in pairs if part.scores is not None])
    found["sts+klue"] = Examples("KorSTS and KLUE-STS", texts, scores=scores)
    return found


def measure(experiment: Experiment, seed: int, model: Path, data: Path, device: str | None) -> dict[str, float]:
    """Train from the plain encoder and score KorSTS test."""
    sets, start = read(data), time.perf_counter()
    if not experiment.is_cross:
        bi = BiEncoder.load(model, device, "float32", pooling=experiment.pooling)
        for stage in experiment.stages:
            train(bi, sets[stage.data], stage.objective, _config(stage, seed, device), stage.options)
        scores = {part: evaluate(bi, sets[part], kind="sts").score for part in ("dev", "test")}
        return {**scores, "seconds": time.perf_counter() - start}
    cross = train_cross(experiment, seed, model, sets, device)
    scores = {part: evaluate(cross, sets[part], kind="sts").score for part in ("dev", "test")}
    return {**scores, "seconds": time.perf_counter() - start}


def train_cross(
    experiment: Experiment, seed: int, model: Path, sets: dict[str, Examples], device: str | None
) -> CrossEncoder:
    """A stage with other labels takes the encoder over and gets a head of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = model
        for place, stage in enumerate(experiment.stages):
            num_labels = 3 if stage.objective == "cross_entropy" else 1
            torch.manual_seed(seed)
            cross = CrossEncoder.create(folder, num_labels, device, "float32")
            train(cross, sets[stage.data], stage.objective, _config(stage, seed, device), stage.options)
            folder = Path(scratch) / str(place)
            cross.save(folder)
    return cross


def _config(stage: Stage, seed: int, device: str | None) -> TrainConfig:
    return replace(stage.config, seed=seed, device=device)


def _file(data: Path, name: str) -> Path:
    return data / name if (data / name).exists() else data / f"{name}.xz"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device")
    parser.add_argument("--sts", choices=["sts", "sts+klue"], default="sts+klue", help="KorSTS alone, or KLUE-STS too")
    parser.add_argument("--objective", default="regression", help="of the second stage")
    parser.add_argument("--epochs", type=int, default=STS.epochs, help="of the second stage")
    parser.add_argument("--sweep", action="store_true", help="the settings that were tried instead")
    parser.add_argument("--only", nargs="*", help="names of experiments, or parts of them")
    options = parser.parse_args()
    second = Stage(options.sts, options.objective, replace(STS, epochs=options.epochs))
    chosen = [
        each
        for each in (sweep() if options.sweep else experiments(second))
        if not options.only or any(word in each.name for word in options.only)
    ]
    record: dict[str, Any] = {"date": datetime.now(UTC).date().isoformat(), "seeds": options.seeds}
    record |= {"second stage": [second.data, second.objective, second.config.epochs], "results": {}}
    record["rows"] = {name: len(examples) for name, examples in read(options.data).items()}
    print(record, flush=True)
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        runs = {
            each.name: [
                pool.submit(measure, each, seed, options.model, options.data, options.device)
                for seed in (options.seeds if each.stages else options.seeds[:1])
            ]
            for each in chosen
        }
        for name, futures in runs.items():
            found = [future.result() for future in futures]
            line = {part: [round(100 * each[part], 2) for each in found] for part in ("dev", "test")} | {
                "seconds": [round(each["seconds"], 1) for each in found]
            }
            record["results"][name] = line
            mean = statistics.mean(line["test"])
            print(f"{name:36} test {mean:6.2f}  {line}", flush=True)
            options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False))
    spread = [float(np.std(line["test"])) for line in record["results"].values() if len(line["test"]) > 1]
    print("largest spread over seeds", max(spread, default=0.0), flush=True)


if __name__ == "__main__":
    main()
