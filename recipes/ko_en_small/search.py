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
from recipes.ko_en_small.data import alone_examples, alone_of, everyday, read, reported
from recipes.ko_en_small.judges import korean_texts
from recipes.ko_en_small.last import few_of, grouped, ranked, weighed
from recipes.ko_en_small.settings import ROUND, check_parts

SEARCH = replace(ROUND, max_steps=1500, learning_rate=2e-5, batch_tokens=262_144)
PARTS = ("korean", "english", "passages", "ranked", "apart")
HELD = 200.0
OF_PASSAGES = 0.25  # of that weight: they are to move, but not far (docs/log.md)
SCALE = 1.0  # of the re-ranker's word: as much as in-batch negatives
SENTENCES = 192  # of a batch
PASSAGES = 24  # questions of a batch, each with its passage
APART = 64  # of a batch, about the same thing
MAX_ENGLISH = 100_000


def search(*paths: Path, changes: dict[str, Any], without: list[str], held: float = HELD) -> None:
    """Train on from the first of the folders that `prepared` takes; the last path is written."""
    *given, out = paths
    config = replace(SEARCH, output=str(out), resume=is_begun(out), **changes)
    chosen = prepared(*given, without=without, steps=config.max_steps, held=held)
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
) -> list[Dataset]:
    """What `begin` learns from, one batch of each an update.

    Sentences stay where it has them, the more so the larger `held` is, and passages, less so, where `kept` has them.
    """
    check_parts(without, PARTS)
    sets, own, finder = read(data, silver), BiEncoder.load(begin), BiEncoder.load(kept)
    few = partial(few_of, steps=steps)

    def stays(examples: Examples, teacher: BiEncoder, size: int, scale: float) -> Dataset:
        options = {"target": "own", "scale": scale}
        few_rows = few(examples, size)
        return Dataset(data=few_rows, objective="embedding_cosine", teacher=teacher, options=options, batch_size=size)

    makers: dict[str, Callable[[], list[Dataset]]] = {
        "korean": lambda: [stays(korean_sentences(data), own, SENTENCES, held)],
        "english": lambda: [stays(english_sentences(data), own, SENTENCES, held)],
        "passages": lambda: [stays(each, finder, PASSAGES, held * OF_PASSAGES) for each in sets.alone],
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


def korean_sentences(data: Path) -> Examples:
    """Of every kind, without those that are measured on."""
    texts = [text for kind in korean_texts(data) for text in kind]
    return drop_overlap(alone_examples("Korean sentences", texts), reported(data))


def english_sentences(data: Path) -> Examples:
    """Captions, news, questions, and what has a translation."""
    texts = [*alone_of(data, "en-sentences", MAX_ENGLISH).texts[0], *everyday(data)[0]]
    return drop_overlap(alone_examples("English sentences", texts), reported(data))
