"""The last round of ko-en-small: Korean is brought to where English is, and what search needs is held in its place.

The first three rounds teach how close sentences are to each other. That leaves a translation at a cosine of 0.85, where
no other sentence is near it any more, and every point of KorSTS that is missing is one where the Korean sentences lie
otherwise than the English ones. So translations learn the vector of the English side. Questions and passages keep
theirs: similarity that is learned on sentences of one length spoils what a question and a long text have in common.
And a re-ranker, which reads a question and a passage together, says how far the encoder's own errors are wrong.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from munjang import BiEncoder, CrossEncoder, Dataset, train
from munjang.data.examples import Examples
from munjang.training.run import is_begun
from munjang.types import Floats, Ints
from recipes.ko_en_reranker.data import negatives
from recipes.ko_en_small.both import Both, neighbours, rescored, softened
from recipes.ko_en_small.data import MADE, Sets, joined, read
from recipes.ko_en_small.judges import read_korean_silver
from recipes.ko_en_small.settings import ROUND, check_parts, neighbourhoods
from recipes.ko_en_small.silver import scored_silver
from recipes.ko_en_small.words import HANGUL, only_korean_learns

LAST = replace(ROUND, max_steps=2000, learning_rate=6e-5)
OF_SEARCH = ("held", "search", "ranked")
PARTS = ("sts", "silver", "neighbours", "korean", "triplets", "aligned", "translations", "english", *OF_SEARCH)
MEDICAL = "MedQuAD"
HELD = 20.0  # what a text's own vector weighs: as much as any other objective
SEARCHED = 64  # questions of a batch, whose passages are about the same thing
RANKED = 32  # questions of a batch that come with candidates
MOST = "wiki"  # as many of them as of all others, where it is there
MAX_RANKED = 20_000  # questions of a kind with candidates
# the re-ranker's logits of a right passage and a wrong one lie 13 apart, cosines 0.1
RANKS = {"similarity": "cosine", "temperature": 0.05, "teacher_temperature": 3.0}


def last(
    *paths: Path, changes: dict[str, Any], without: list[str], held: float = HELD, is_of_words: bool = False
) -> None:
    """Train on from the first of the folders that `prepared` takes; the last path is written.

    `is_of_words`: nothing but the vectors of Korean pieces learns.
    """
    *given, out = paths
    config = replace(LAST, output=str(out), resume=is_begun(out), **changes)
    chosen = prepared(*given, without=without, steps=config.max_steps, held=held)
    encoder = BiEncoder.load(given[0], dtype="float32")
    if is_of_words:
        only_korean_learns(encoder)
        chosen = [each for each in chosen if _has_korean(each)]
        config = replace(config, weight_decay=0.0)  # which would shrink the others' vectors
    train(encoder, chosen, config=replace(config, accumulate=len(chosen)))


def _has_korean(dataset: Dataset) -> bool:
    assert isinstance(dataset.data, Examples)
    return any(HANGUL.search(text) for column in dataset.data.texts for text in column)


def prepared(
    begin: Path,
    kept: Path,
    tutor: Path,
    reranker: Path,
    silver: Path,
    data: Path,
    *,
    without: list[str],
    steps: int | None = None,
    held: float = HELD,
) -> list[Dataset]:
    """Return the datasets of `begin`, one batch of each an update; teachers read no more than `steps` updates take.

    Questions and passages stay where `kept` has them, the more so the larger `held` is.
    """
    check_parts(without, PARTS)
    sets = read(data, silver)
    print(sets, flush=True)
    own, finder = BiEncoder.load(begin), cache(partial(BiEncoder.load, kept))  # for what is of search alone
    both = Both(BiEncoder.load(tutor), own)
    few, own_vector = partial(few_of, steps=steps), {"target": "own", "scale": held}

    def ranks(parts: list[Examples], size: int = 192) -> list[Dataset]:
        return [Dataset(data=each, objective="cosent", batch_size=size) for each in parts]

    def judged() -> list[Examples]:
        found = scored_silver(silver)
        return rescored(both, found.pairs, found.english)

    makers: dict[str, Callable[[], list[Dataset]]] = {
        "sts": lambda: [*ranks([softened(both, sets.sts[0], data)]), *ranks(sets.sts[1:], 96)],
        "silver": lambda: ranks(judged()),
        "neighbours": lambda: ranks([neighbours(both, data)]),
        "korean": lambda: ranks([read_korean_silver(silver / "silver-ko.tsv")], 256),
        "triplets": lambda: [Dataset(data=joined("NLI triplets", sets.triplets), objective="in_batch", batch_size=128)],
        "aligned": lambda: [
            Dataset(data=few(each, 192), objective="embedding_cosine", teacher=own, batch_size=192, sampler="random")
            for each in sets.translations
        ],
        "translations": lambda: [neighbourhoods(few(sets.translations[0], 192), 192, both, target="first")],
        "english": lambda: [neighbourhoods(few(sets.english[0], 192), 192, both)],
        "held": lambda: [
            Dataset(
                data=few(each, 48), objective="embedding_cosine", teacher=finder(), options=own_vector, batch_size=48
            )
            for each in _asked(sets)
        ],
        "search": lambda: [
            Dataset(data=each, objective="in_batch", batch_size=SEARCHED, sampler="in_order")
            for each in grouped(sets, finder())
        ],
        "ranked": lambda: [ranked([few(*each) for each in weighed(sets)], finder(), CrossEncoder.load(reranker))],
    }
    return [each for name in PARTS if name not in without for each in makers[name]()]


def few_of(examples: Examples, size: int, steps: int | None) -> Examples:
    """As many rows as so many updates with batches of `size` take, by chance."""
    count = len(examples) if steps is None else steps * size
    return examples.take(np.sort(np.random.default_rng(2).permutation(len(examples))[:count]).tolist())


def _asked(sets: Sets) -> list[Examples]:
    """Questions and passages. MedQuAD has the longest English texts: a part of its own."""
    questions = [each for each in sets.questions if each.name != MEDICAL]
    return [joined("questions and passages", [*sets.documents, *questions]), *sets.alone, *_medical(sets)]


def grouped(sets: Sets, kept: BiEncoder) -> list[Examples]:
    """Passages about the same thing follow each other. Only those that share no sentence may be told apart."""
    apart = [*_made(sets), *_medical(sets)]
    return [each.take(by_topic(kept.encode(list(each.texts[1]), progress=True), SEARCHED)) for each in apart]


def _made(sets: Sets) -> list[Examples]:
    return [each for each in sets.passages if each.name in MADE]


def weighed(sets: Sets) -> list[tuple[Examples, int]]:
    """Questions with how many of them a batch has."""
    made = _made(sets)
    others = len([each for each in made if each.name != MOST])
    left = RANKED // 2 if others < len(made) else RANKED
    return [(each, RANKED // 2 if each.name == MOST else left // others) for each in made]


def _medical(sets: Sets) -> list[Examples]:
    return [each for each in sets.questions if each.name == MEDICAL]


def ranked(parts: list[Examples], finder: BiEncoder, reranker: CrossEncoder, scale: float | None = None) -> Dataset:
    """Questions with their passage and others that the encoder takes for it, and what the re-ranker says of each.

    Without a scale this weighs 0.05², next to nothing beside the rest: so it was in the rounds of the shipped model.
    """
    random = np.random.default_rng(3)
    some = [each.take(np.sort(random.permutation(len(each))[:MAX_RANKED]).tolist()) for each in parts]
    mined = joined("ranked", [negatives(finder, each) for each in some])
    return Dataset(data=mined, objective="kl", teacher=reranker, options={**RANKS, "scale": scale}, batch_size=RANKED)


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
