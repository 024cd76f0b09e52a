"""The last round of ko-en-small: Korean is brought to where English is, and what search needs is held in its place.

The first three rounds teach how close sentences are to each other. That leaves a translation at a cosine of 0.85, where
no other sentence is near it any more, and every point of KorSTS that is missing is one where the Korean sentences lie
otherwise than the English ones. So translations learn the vector of the English side. Questions and passages keep
theirs: similarity that is learned on sentences of one length spoils what a question and a long text have in common.
And a re-ranker, which reads a question and a passage together, says how far the encoder's own errors are wrong.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from munjang import BiEncoder, CrossEncoder, Dataset, train
from munjang.data.examples import Examples
from munjang.errors import unknown
from munjang.training.run import is_begun
from munjang.types import Floats, Ints
from recipes.ko_en_reranker.data import negatives
from recipes.ko_en_small.both import Both, neighbours, rescored, softened
from recipes.ko_en_small.data import MADE, Sets, joined, read
from recipes.ko_en_small.judges import read_korean_silver
from recipes.ko_en_small.settings import ROUND, neighbourhoods
from recipes.ko_en_small.silver import scored_silver

LAST = replace(ROUND, max_steps=2000, learning_rate=6e-5)
PARTS = ("sts", "silver", "korean", "triplets", "aligned", "translations", "english", "held", "search", "ranked")
OF_SEARCH = PARTS[-3:]
SEARCHED = 64  # questions of a batch, whose passages are about the same thing
MAX_RANKED = 20_000  # questions of a kind with candidates
# the re-ranker's logits of a right passage and a wrong one lie 13 apart, cosines 0.1
RANKS = {"similarity": "cosine", "temperature": 0.05, "teacher_temperature": 3.0}


def last(
    begin: Path,
    kept: Path,
    tutor: Path,
    reranker: Path,
    silver: Path,
    data: Path,
    out: Path,
    changes: dict[str, Any],
    without: list[str],
) -> None:
    """Go on from `begin`; questions and passages stay where `kept` has them."""
    chosen = prepared(begin, kept, tutor, reranker, silver, data, without)
    config = replace(LAST, output=str(out), accumulate=len(chosen), resume=is_begun(out), **changes)
    train(BiEncoder.load(begin, dtype="float32"), chosen, config=config)


def prepared(
    begin: Path, kept: Path, tutor: Path, reranker: Path, silver: Path, data: Path, without: list[str]
) -> list[Dataset]:
    """What it learns from, one batch of each an update."""
    for name in without:
        if name not in PARTS:
            raise unknown("part of the data", name, PARTS)
    sets, judged = read(data, silver), scored_silver(silver)
    print(sets, flush=True)
    own = BiEncoder.load(begin)
    both = Both(BiEncoder.load(tutor), own)
    scored = [*rescored(both, judged.pairs, judged.english), neighbours(both, data)]
    korean = read_korean_silver(silver / "silver-ko.tsv")
    found = {
        "sts": [
            Dataset(data=softened(both, sets.sts[0], data), objective="cosent", batch_size=192),
            Dataset(data=sets.sts[1], objective="cosent", batch_size=96),
        ],
        "silver": [Dataset(data=each, objective="cosent", batch_size=192) for each in scored],
        "korean": [Dataset(data=korean, objective="cosent", batch_size=256)],
        "triplets": [Dataset(data=joined("NLI triplets", sets.triplets), objective="in_batch", batch_size=128)],
        "aligned": [
            Dataset(data=each, objective="embedding_cosine", teacher=own, batch_size=192, sampler="random")
            for each in sets.translations
        ],
        "translations": [neighbourhoods(sets.translations[0], 192, both, target="first")],
        "english": [neighbourhoods(sets.english[0], 192, both)],
    }
    if not set(OF_SEARCH) <= set(without):
        finder = BiEncoder.load(kept)
        found |= _search(sets, finder)
    if "ranked" not in without:
        found["ranked"] = [_ranked(sets.passages[-len(MADE) :], finder, CrossEncoder.load(reranker))]
    return [each for name in PARTS if name not in without for each in found[name]]


def _search(sets: Sets, kept: BiEncoder) -> dict[str, list[Dataset]]:
    """Questions and passages: where they are, and which belong together among passages about the same thing.

    Only passages that share no sentence may be told apart. MedQuAD has the longest English texts: a part of its own.
    """
    *documents, gathered = sets.passages
    questions = [each for each in sets.questions if each.name != "MedQuAD"]
    medical = [each for each in sets.questions if each.name == "MedQuAD"]
    apart = [each for each in sets.passages if each.name in MADE] + medical
    grouped = [each.take(by_topic(kept.encode(list(each.texts[1]), progress=True), SEARCHED)) for each in apart]
    return {
        "held": [
            Dataset(data=each, objective="embedding_cosine", teacher=kept, options={"target": "own"}, batch_size=48)
            for each in (joined("questions and passages", [*documents, *questions]), gathered, *medical)
        ],
        "search": [
            Dataset(data=each, objective="in_batch", batch_size=SEARCHED, sampler="in_order") for each in grouped
        ],
    }


def _ranked(parts: list[Examples], finder: BiEncoder, reranker: CrossEncoder) -> Dataset:
    """Questions with their passage and others that the encoder takes for it, and what the re-ranker says of each."""
    random = np.random.default_rng(3)
    some = [each.take(np.sort(random.permutation(len(each))[:MAX_RANKED]).tolist()) for each in parts]
    mined = joined("ranked", [negatives(finder, each) for each in some])
    return Dataset(data=mined, objective="kl", teacher=reranker, options=RANKS, batch_size=24)


def by_topic(vectors: Floats, size: int) -> list[int]:
    """Rows in an order in which neighbours follow each other: halves along the widest direction, halved again."""

    def halved(rows: Ints) -> list[Ints]:
        if len(rows) <= size:
            return [rows]
        centred = vectors[rows] - vectors[rows].mean(0)
        direction = centred[np.argmax(np.einsum("nd,nd->n", centred, centred))]
        for _ in range(4):  # towards the first principal component; all of them would take minutes
            direction = (centred @ direction) @ centred
            direction /= max(np.linalg.norm(direction), 1e-12)
        rows = rows[np.argsort(centred @ direction, kind="stable")]
        middle = len(rows) // 2
        return [*halved(rows[:middle]), *halved(rows[middle:])]

    return [row for rows in halved(np.arange(len(vectors))) for row in rows.tolist()]
