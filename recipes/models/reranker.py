"""Stages 3 and 4: a teacher of all layers of the encoder learns from the lists, and the re-ranker from its scores.

The word vectors stay those of ko-en-small. WORK/teacher and WORK/student are model folders, WORK/scores/<source>.npy
has the teacher's logits of every list.
"""

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from munjang import BiEncoder, CrossEncoder, Dataset, TrainConfig, train
from munjang.checkpoint.shorten import shorten
from munjang.training.loop import Loop
from munjang.types import Doubles, Floats
from recipes.models.lists import Lists, cosines, read_lists

NUM_LAYERS = 8  # 100 passages of 116 tokens take 1.1 s of two cores in int8; 12 layers take 1.7 s
CONFIG = TrainConfig(
    batch_size=32,
    warmup=0.1,
    schedule="cosine",
    mixing="temperature",
    max_length=320,
    ema=0.995,
    quiet=True,
    log_every=100,
    batch_tokens=131_072,
)
FIRST_IS_RIGHT = {"num_sampled": 0, "scale": 1.0, "activation": "identity"}  # logits as they are
ENGLISH = ("abstracts", "arxiv", "medquad", "quora", "scitldr", "snli", "wikiqa")  # sources
TEMPERATURE = 0.03  # of the encoder's cosines
NUM_CENTRED = 20  # lists of each source
CERTAINTY = 0.5  # how much of the probability goes to the right passage, whatever the teacher thinks


def teach(start: BiEncoder, work: Path, num_updates: int, rate: float, seed: int) -> None:
    """Train the teacher on which passage is right, then score all lists with it."""
    lists = all_lists(work)
    datasets = [
        Dataset(data=each.examples(), objective="cross_in_batch", options=FIRST_IS_RIGHT, sampler="random")
        for each in lists
    ]
    teacher = beginning(start, num_layers_of(start))
    fit(teacher, datasets, replace(CONFIG, max_steps=num_updates, learning_rate=rate, seed=seed))
    teacher.save(work / "teacher")
    score(CrossEncoder.load(work / "teacher", str(start.device)), lists, work / "scores")


def score(teacher: CrossEncoder, lists: list[Lists], folder: Path) -> None:
    """Write the teacher's logits of every list."""
    folder.mkdir(exist_ok=True)
    for each in lists:
        logits = logits_of(teacher, each)
        np.save(folder / f"{each.name}.npy", logits.astype(np.float16))
        print(f"{each.name}: the right passage leads {100 * (logits.argmax(1) == 0).mean():.1f} % of lists", flush=True)


def logits_of(model: CrossEncoder, lists: Lists, max_lists: int | None = None) -> Floats:
    """Return the logits of the first lists [N, 1 + NUM_NEGATIVES]."""
    queries, passages = lists.query_of_N[:max_lists].tolist(), lists.passages_NK[:max_lists].tolist()
    pairs = [
        (lists.queries[at], lists.passages[each]) for at, row in zip(queries, passages, strict=True) for each in row
    ]
    found: Floats = model.predict(pairs, activation="Identity", progress=False).reshape(len(queries), -1)
    return found


def learn(start: BiEncoder, finder: BiEncoder, work: Path, share: float, config: TrainConfig, out: Path) -> None:
    """Train the re-ranker on what is right, on what the teacher thinks, and in English on the encoder's cosines."""
    datasets = []
    for each in all_lists(work):
        own = share if each.name in ENGLISH else 1.0
        parts = [(CERTAINTY, first_is_right(each.passages_NK.shape))]
        if (work / f"scores/{each.name}.npy").exists():
            logits_NK = np.load(work / f"scores/{each.name}.npy").astype(np.float64)
            parts.append(((1 - CERTAINTY) * own, shares(logits_NK)))
        if own < 1:
            parts.append(((1 - CERTAINTY) * (1 - own), shares(cosines(finder, each) / TEMPERATURE)))
        datasets.append(Dataset(data=each.examples(mixed(parts)), objective="listnet", sampler="random"))
    student = beginning(start, min(NUM_LAYERS, num_layers_of(start)))
    fit(student, datasets, config)
    centre(student, all_lists(work))
    student.save(out)


def centre(model: CrossEncoder, lists: list[Lists]) -> None:
    """Shift all scores so that 0, half after a sigmoid, lies between right passages and the best wrong ones.

    Lists teach an order alone: adding a number to all scores changes nothing there, and a threshold means nothing.
    """
    middles = []
    for each in lists:
        logits_NK = logits_of(model, each, NUM_CENTRED)
        middles.append((logits_NK[:, 0].mean() + logits_NK[:, 1:].max(1).mean()) / 2)
    *_, last = (module for module in model.network.head.modules() if isinstance(module, nn.Linear))
    with torch.no_grad():
        last.bias -= float(np.mean(middles))


def first_is_right(shape: tuple[int, ...]) -> Doubles:
    """Return all of the probability for the first passage of each list."""
    certain_NK = np.zeros(shape)
    certain_NK[:, 0] = 1
    return certain_NK


def shares(logits_NK: Doubles) -> Doubles:
    """Return the softmax over each list."""
    raised_NK = np.exp(logits_NK - logits_NK.max(1, keepdims=True))
    found: Doubles = raised_NK / raised_NK.sum(1, keepdims=True)
    return found


def mixed(parts: list[tuple[float, Doubles]]) -> Doubles:
    """Return the logarithm of the weighted mean of probabilities, which listnet takes as scores.

    >>> np.exp(mixed([(0.5, np.array([[1.0, 0.0]])), (0.5, np.array([[0.5, 0.5]]))])).round(2).tolist()
    [[0.75, 0.25]]
    """
    weights, all_shares = zip(*parts, strict=True)
    logarithms: Doubles = np.log(np.average(all_shares, axis=0, weights=weights) + 1e-9)
    return logarithms


def all_lists(work: Path) -> list[Lists]:
    """Read the lists of every source that has some."""
    found = [read_lists(work, path.stem) for path in sorted((work / "lists").glob("*.npz"))]
    return [each for each in found if len(each.query_of_N) >= 2]


def num_layers_of(model: BiEncoder) -> int:
    """Return the number of layers of an encoder that we compute ourselves."""
    own = model.network.encoder.own
    assert own is not None
    return own.shape.num_layers


def beginning(start: BiEncoder, num_layers: int) -> CrossEncoder:
    """Put a new head on evenly spaced layers of the encoder; its word vectors are not trained."""
    torch.manual_seed(29)  # of the head
    with TemporaryDirectory() as folder:
        start.save(folder)
        model = BiEncoder.load(folder, "cpu", "float32")
        shorten(model.model, num_layers)
        model.save(Path(folder) / "short")
        made = CrossEncoder.create(Path(folder) / "short", num_labels=1, device=str(start.device), dtype="float32")
    own = made.network.encoder.own
    assert own is not None
    for parameter in made.network.parameters():
        parameter.requires_grad_(True)
    own.embeddings.requires_grad_(False)
    return made


def fit(model: CrossEncoder, datasets: list[Dataset], config: TrainConfig) -> None:
    """Train, and print the loss now and then."""
    started = time.monotonic()

    def show(line: dict[str, Any]) -> None:
        if "loss" in line:
            print(f"  update {line['step']}: loss {line['loss']:.4f}, {time.monotonic() - started:.0f} s", flush=True)

    def watch(loop: Loop) -> None:
        loop.on_log = show

    train(model, datasets, config=replace(config, device=str(model.device)), watch=watch)
