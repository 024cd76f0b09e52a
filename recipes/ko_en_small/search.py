"""A round that learns to search and leaves similarity where it is.

The last round learns similarity and holds search in its place, and loses some of it nevertheless. Here it is the other
way round: sentences of either language keep the vectors that they have, and a re-ranker, which reads a question and a
passage together, says of real passages which of them answer it.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from munjang import BiEncoder, CrossEncoder, Dataset, train
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap
from munjang.training.run import is_begun
from recipes.ko_en_small.data import Sets, alone_examples, alone_of, everyday, joined, read, reported
from recipes.ko_en_small.judges import korean_texts
from recipes.ko_en_small.last import few_of, ranked, weighed
from recipes.ko_en_small.settings import ROUND

# Dropout would move what is to stay
SEARCH = replace(ROUND, max_steps=2000, learning_rate=5e-5, batch_tokens=262_144, dropout=0.0, seed=33)
HELD_WEIGHT = 200.0  # of vectors that stay where they are
SCALE = 1.0  # of the re-ranker's word: as much as in-batch negatives
SENTENCES = 192  # of a batch
PASSAGES = 48  # questions of a batch, each with its passage
MAX_ENGLISH = 100_000


def search(begin: Path, kept: Path, reranker: Path, silver: Path, data: Path, out: Path) -> None:
    """Train on from `begin`."""
    datasets = prepared(begin, kept, reranker, silver, data, SEARCH.max_steps)
    config = replace(SEARCH, output=str(out), resume=is_begun(out), accumulate=len(datasets))
    train(BiEncoder.load(begin, dtype="float32"), datasets, config=config)


def prepared(begin: Path, kept: Path, reranker: Path, silver: Path, data: Path, steps: int | None) -> list[Dataset]:
    """Return what `begin` learns from, one batch of each an update.

    Sentences stay where it has them; questions and passages go to where `kept` has them.
    """
    sets, own, finder = read(data, silver), BiEncoder.load(begin), BiEncoder.load(kept)
    few = partial(few_of, steps=steps)

    def stays(examples: Examples, teacher: BiEncoder, size: int) -> Dataset:
        options = {"target": "own", "scale": HELD_WEIGHT}
        few_rows = few(examples, size)
        return Dataset(data=few_rows, objective="embedding_cosine", teacher=teacher, options=options, batch_size=size)

    sentences = (scored_sentences(sets), korean_sentences(data), english_sentences(data))
    return [
        *(stays(examples, own, SENTENCES) for examples in sentences),
        *(stays(examples, finder, PASSAGES) for examples in searched(sets)),
        ranked([few(*each) for each in weighed(sets)], finder, CrossEncoder.load(reranker), scale=SCALE),
    ]


def searched(sets: Sets) -> list[Examples]:
    """Questions and passages; two questions that ask the same are sentences."""
    answered = [each for each in sets.questions if each.columns[0] == "question"]
    return [joined("documents", sets.documents), *sets.alone, joined("answered", answered)]


def scored_sentences(sets: Sets) -> Examples:
    """The kind that similarity is measured on, in both languages."""
    return alone_examples("scored", [text for each in sets.sts for column in each.texts for text in column])


def korean_sentences(data: Path) -> Examples:
    """Return pairs of every kind, without those that are measured on."""
    texts = [text for kind in korean_texts(data) for text in kind]
    return drop_overlap(alone_examples("Korean sentences", texts), reported(data))


def english_sentences(data: Path) -> Examples:
    """Captions, news, questions, and what has a translation."""
    texts = [*alone_of(data, "en-sentences", MAX_ENGLISH).texts[0], *everyday(data)[0]]
    return drop_overlap(alone_examples("English sentences", texts), reported(data))
