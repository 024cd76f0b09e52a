"""Stages 3 and 4: a teacher of all layers of the encoder learns from the lists, and the re-ranker from its scores.

The re-ranker begins as layers of the teacher. The word vectors stay those of ko-en-small. WORK/teacher and
WORK/reranker are model folders, WORK/scores/<source>.npy has the teacher's logits of every list that is not English.
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
    max_length=448,
    ema=0.995,
    quiet=True,
    log_every=100,
    batch_tokens=131_072,
)
FIRST_IS_RIGHT = {"num_sampled": 0, "scale": 1.0, "activation": "identity"}  # logits as they are
ENGLISH = ("abstracts", "arxiv", "medquad", "quora", "scitldr", "snli", "wikiqa")  # sources
ACROSS = ("across-documents", "across-gathered", "across-headings", "across-sentences", "medicine")
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
    teacher = beginning(start)
    fit(teacher, datasets, replace(CONFIG, max_steps=num_updates, learning_rate=rate, seed=seed))
    teacher.save(work / "teacher")
    others = [each for each in lists if teacher_share(each.name)]
    score(CrossEncoder.load(work / "teacher", str(start.device)), others, work / "scores")


def teacher_share(name: str) -> float:
    """Return how much of the soft half of a source's targets is the teacher's; the rest is the encoder's.

    In English the teacher has seen too little: alone it ranks unseen abstracts worse than the encoder.
    """
    return 0.0 if name in ENGLISH else 0.5 if name in ACROSS else 1.0


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


def learn(finder: BiEncoder, work: Path, num_layers: int, config: TrainConfig, out: Path) -> None:
    """Train the re-ranker on what is right, on what the teacher thinks, and on the encoder's cosines."""
    datasets = []
    for each in all_lists(work):
        share = teacher_share(each.name)
        parts = [(CERTAINTY, first_is_right(each.passages_NK.shape))]
        if share > 0:
            logits_NK = np.load(work / f"scores/{each.name}.npy").astype(np.float64)
            parts.append(((1 - CERTAINTY) * share, shares(logits_NK)))
        if share < 1:
            parts.append(((1 - CERTAINTY) * (1 - share), shares(cosines(finder, each) / TEMPERATURE)))
        datasets.append(Dataset(data=each.examples(mixed(parts)), objective="listnet", sampler="random"))
    student = shortened(work / "teacher", num_layers, str(finder.device))
    fit(student, datasets, config)
    centre(student, all_lists(work))
    student.save(out)


def shortened(folder: Path, num_layers: int, device: str) -> CrossEncoder:
    """Load a cross-encoder and keep evenly spaced layers of it; its word vectors are not trained."""
    model = CrossEncoder.load(folder, device, "float32")
    own = model.network.encoder.own
    assert own is not None
    shorten(model.model, min(num_layers, own.shape.num_layers))
    trains(model)
    return model


def centre(model: CrossEncoder, lists: list[Lists]) -> None:
    """Shift all scores so that 0, half after a sigmoid, lies between right passages and the best wrong ones.

    Lists teach an order alone: adding a number to all scores changes nothing there, and a threshold means nothing.
    """
    middles = []
    for each in lists:
        logits_NK = logits_of(model, each, NUM_CENTRED)
        middles.append((logits_NK[:, 0].mean() + logits_NK[:, 1:].max(1).mean()) / 2)
    head = getattr(model.network, "head", None)
    assert isinstance(head, nn.Module)
    *_, last = (module for module in head.modules() if isinstance(module, nn.Linear))
    with torch.no_grad():
        last.bias.sub_(float(np.mean(middles)))


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


def beginning(start: BiEncoder) -> CrossEncoder:
    """Put a new head on the encoder; its word vectors are not trained."""
    torch.manual_seed(29)  # of the head
    with TemporaryDirectory() as folder:
        start.save(folder)
        made = CrossEncoder.create(folder, num_labels=1, device=str(start.device), dtype="float32")
    trains(made)
    return made


def trains(model: CrossEncoder) -> None:
    """Let all weights be trained but word vectors."""
    network = model.network
    assert isinstance(network, nn.Module)
    assert network.encoder.own is not None
    network.requires_grad_(True)
    network.encoder.own.embeddings.requires_grad_(False)


def fit(model: BiEncoder | CrossEncoder, datasets: list[Dataset], config: TrainConfig) -> None:
    """Train, and print the loss now and then."""
    started = time.monotonic()

    def show(line: dict[str, Any]) -> None:
        if "loss" in line:
            print(f"  update {line['step']}: loss {line['loss']:.4f}, {time.monotonic() - started:.0f} s", flush=True)

    def watch(loop: Loop) -> None:
        loop.on_log = show

    train(model, datasets, config=replace(config, device=str(model.device)), watch=watch)
