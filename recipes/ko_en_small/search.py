"""A round that learns to search and leaves similarity where it is.

The last round learns similarity and holds search in its place, and loses some of it nevertheless. Here it is the other
way round: sentences of either language keep the vectors that they have, and a re-ranker, which reads a question and a
passage together, says of real passages which of them answer it.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from munjang import BiEncoder, CrossEncoder, Dataset, train
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap
from munjang.training.run import is_begun
from recipes.ko_en_small.data import Sets, alone_examples, alone_of, everyday, joined, read, reported
from recipes.ko_en_small.judges import korean_texts
from recipes.ko_en_small.last import few_of, grouped, ranked, weighed
from recipes.ko_en_small.settings import ROUND, check_parts

# Dropout would move what is to stay
SEARCH = replace(ROUND, max_steps=1500, learning_rate=5e-5, batch_tokens=262_144, dropout=0.0)
PARTS = ("scored", "korean", "english", "passages", "ranked", "apart")
HELD = 200.0
OF_PASSAGES = 1.0  # of that weight
SCALE = 1.0  # of the re-ranker's word: as much as in-batch negatives
SENTENCES = 192  # of a batch
PASSAGES = 48  # questions of a batch, each with its passage
APART = 64  # of a batch, about the same thing
MAX_ENGLISH = 100_000


def search(
    *paths: Path, changes: dict[str, Any], without: list[str], held: float = HELD, of_passages: float = OF_PASSAGES
) -> None:
    """Train on from the first of the folders that `prepared` takes; the last path is written."""
    *given, out = paths
    config = replace(SEARCH, output=str(out), resume=is_begun(out), **changes)
    chosen = prepared(*given, without=without, steps=config.max_steps, held=held, of_passages=of_passages)
    train(BiEncoder.load(given[0], dtype="float32"), chosen, config=replace(config, accumulate=len(chosen)))


def prepared(
    begin: Path,
    kept: Path,
    reranker: Path,
    silver: Path,
    data: Path,
    *,
    without: list[str],
    steps: int | None = None,
    held: float = HELD,
    of_passages: float = OF_PASSAGES,
) -> list[Dataset]:
    """What `begin` learns from, one batch of each an update.

    Sentences stay where it has them, the more so the larger `held` is. Questions and passages go to where `kept` has
    them, with `of_passages` of that weight.
    """
    check_parts(without, PARTS)
    sets, own, finder = read(data, silver), BiEncoder.load(begin), BiEncoder.load(kept)
    few = partial(few_of, steps=steps)

    def stays(examples: Examples, teacher: BiEncoder, size: int, scale: float) -> Dataset:
        options = {"target": "own", "scale": scale}
        few_rows = few(examples, size)
        return Dataset(data=few_rows, objective="embedding_cosine", teacher=teacher, options=options, batch_size=size)

    makers: dict[str, Callable[[], list[Dataset]]] = {
        "scored": lambda: [stays(scored_sentences(sets), own, SENTENCES, held)],
        "korean": lambda: [stays(korean_sentences(data), own, SENTENCES, held)],
        "english": lambda: [stays(english_sentences(data), own, SENTENCES, held)],
        "passages": lambda: [stays(each, finder, PASSAGES, held * of_passages) for each in searched(sets)],
        "ranked": lambda: [
            ranked([few(*each) for each in weighed(sets)], finder, CrossEncoder.load(reranker), scale=SCALE)
        ],
        "apart": lambda: [
            Dataset(data=each, objective="in_batch", batch_size=APART, sampler="in_order")
            for each in grouped(sets, finder)
            if each.name == "wiki"
        ],
    }
    return [each for name in PARTS if name not in without for each in makers[name]()]


def searched(sets: Sets) -> list[Examples]:
    """Questions and passages; two questions that ask the same are sentences."""
    answered = [each for each in sets.questions if each.columns[0] == "question"]
    return [joined("documents", sets.documents), *sets.alone, joined("answered", answered)]


def scored_sentences(sets: Sets) -> Examples:
    """The kind that similarity is measured on, in both languages."""
    return alone_examples("scored", [text for each in sets.sts for column in each.texts for text in column])


def korean_sentences(data: Path) -> Examples:
    """Of every kind, without those that are measured on."""
    texts = [text for kind in korean_texts(data) for text in kind]
    return drop_overlap(alone_examples("Korean sentences", texts), reported(data))


def english_sentences(data: Path) -> Examples:
    """Captions, news, questions, and what has a translation."""
    texts = [*alone_of(data, "en-sentences", MAX_ENGLISH).texts[0], *everyday(data)[0]]
    return drop_overlap(alone_examples("English sentences", texts), reported(data))
