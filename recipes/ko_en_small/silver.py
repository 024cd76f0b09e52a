"""More pairs with scores: a large English cross-encoder, trained on the STS sets, scores pairs that nobody has scored.

Where a sentence has a translation, the score holds for the translations and across the two languages too. Pairs of
random sentences would all be unlike: most are neighbours by the vectors of a bi-encoder (Augmented SBERT, 2021).
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from munjang import BiEncoder, CrossEncoder, TrainConfig, train
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.writing import columns_of, write_table
from munjang.training.datasets import Dataset
from munjang.types import Floats, Ints
from munjang.vectors.nearest import nearest
from recipes.ko_en_small.data import alone_of, documented, everyday, file, firsts, joined, reported, scored

SCORER = TrainConfig(
    epochs=4, batch_size=32, learning_rate=3e-5, warmup=0.1, max_length=128, seed=7, save_every=100_000
)
NEAR = (1, 2, 3, 5, 8)  # which neighbours a sentence is paired with
SIDES = (
    ("sentence1_en", "sentence2_en"),
    ("sentence1_ko", "sentence2_ko"),
    ("sentence1_en", "sentence2_ko"),
    ("sentence1_ko", "sentence2_en"),
)
MAX_NLI, MAX_DOCS, MAX_ENGLISH = 60_000, 15_000, 20_000


class Finder(Protocol):
    """Vectors of texts."""

    @property
    def device(self) -> torch.device: ...

    def encode(self, texts: list[str], *, progress: bool | None = None) -> Floats: ...


@dataclass(frozen=True)
class Pairs:
    """Sentences and which of them are to be scored together."""

    english: list[str]
    korean: list[str] | None
    first: Ints
    second: Ints


def scorer(model: Path, data: Path, out: Path) -> None:
    """A cross-encoder for English similarity, from the largest English encoder at hand."""
    avoid = reported(data)
    examples = drop_overlap(scored(data, "sts/stsb-train", "STSb"), avoid)
    cross = CrossEncoder.create(model, num_labels=1, dtype="float32")
    dev = str(file(data, "sts/stsb-dev"))
    config = replace(SCORER, output=str(out), evaluate=(dev,), avoid=())
    train(cross, [Dataset(data=examples, objective="cross_bce", sampler="random")], config=config)


def silver(bi: Path, cross: Path, data: Path, out: Path) -> None:
    """Scored pairs, as two tables: English alone, and English with Korean."""
    finder, judge = BiEncoder.load(bi), CrossEncoder.load(cross)
    out.mkdir(parents=True, exist_ok=True)
    docs = documented(data, MAX_DOCS, np.random.default_rng(1))
    english = alone_of(data, "en-sentences", 200_000).texts[0]
    parts = [
        near(finder, *everyday(data), seed=1),
        near(finder, *docs, seed=2, ranks=NEAR[:2]),
        near(finder, english[:MAX_ENGLISH], None, seed=3, ranks=NEAR[:3]),
        entailed(data),
    ]
    for name, some in (("silver-en", parts[2:]), ("silver-en-ko", parts[:2])):
        table = joined(name, [judged(judge, pairs, name) for pairs in some])
        table = drop_overlap(table, reported(data))
        assert table.scores is not None
        write_table(out / f"{name}.tsv", columns_of(table))
        print(f"{name}: {len(table):,} pairs, scores {np.quantile(table.scores, (0.1, 0.5, 0.9)).round(3)}", flush=True)


@dataclass(frozen=True)
class Silver:
    """Pairs that a cross-encoder has scored, and the English that it read."""

    pairs: list[Examples]
    english: list[Examples]


def scored_silver(folder: Path) -> Silver:
    """Korean and crossed pairs, and English ones."""
    source = folder / "silver-en-ko.tsv"
    scale: dict[str, Any] = {"target": "scores", "score_range": (0.0, 1.0)}
    both, korean, one, other = (read_examples(source, texts=columns, **scale) for columns in SIDES)
    english = read_examples(folder / "silver-en.tsv", texts=("sentence1", "sentence2"), **scale)
    pairs = [
        joined("silver Korean and crossed", [korean, korean, one, other]),
        joined("silver English", [english, both]),
    ]
    return Silver(pairs, [joined("English", [both] * 4), pairs[1]])


def near(
    finder: Finder, english: list[str], korean: list[str] | None, seed: int, ranks: tuple[int, ...] = NEAR
) -> Pairs:
    """Each sentence with some of its neighbours and with one at random."""
    random = np.random.default_rng(seed)
    kept = firsts(english)
    english = [english[row] for row in kept]
    korean = None if korean is None else [korean[row] for row in kept]
    vectors = finder.encode(english, progress=True)
    itself = np.arange(len(english))
    _, places = nearest(vectors, vectors, max(ranks), "cosine", (itself, itself), finder.device)
    pairs = [(row, int(places[row, at - 1])) for row in range(len(english)) for at in ranks]
    pairs += [(row, int(other)) for row, other in enumerate(random.integers(0, len(english), len(english)))]
    unique = np.array(sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}))
    return Pairs(english, korean, unique[:, 0], unique[:, 1])


def entailed(data: Path) -> Pairs:
    """Premises with their hypotheses."""
    texts: list[str] = []
    for name in ("nli/snli-train", "nli/mnli-train"):
        found = read_examples(file(data, name), texts=("premise", "hypothesis"))
        random = np.random.default_rng(1).permutation(len(found))[: MAX_NLI // 2].tolist()
        texts += [text for row in random for text in (found.texts[0][row], found.texts[1][row])]
    places = np.arange(0, len(texts), 2)
    return Pairs(texts, None, places, places + 1)


def judged(judge: CrossEncoder, pairs: Pairs, name: str) -> Examples:
    """The pairs with the cross-encoder's scores."""
    one, other = (
        [[texts[row] for row in rows.tolist()] for rows in (pairs.first, pairs.second)]
        for texts in (pairs.english, pairs.korean or pairs.english)
    )
    scores = judge.predict(list(zip(*one, strict=True)), activation="Sigmoid", progress=True).astype(np.float64)
    if pairs.korean is None:
        return Examples(name, (one[0], one[1]), ("sentence1", "sentence2"), scores=scores)
    columns = ("sentence1_en", "sentence2_en", "sentence1_ko", "sentence2_ko")
    return Examples(name, (one[0], one[1], other[0], other[1]), columns, scores=scores)
