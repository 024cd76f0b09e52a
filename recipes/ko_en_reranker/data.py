"""Training data of ko-en-reranker: queries with candidates, the first of which is right or all of which are scored."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from munjang import BiEncoder
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.training.negatives import mine_negatives
from munjang.vectors.nearest import nearest
from recipes.ko_en_small.data import MADE, Sets, documented, everyday, file, joined, read, reported

NUM_NEGATIVES = 7
TEMPERATURE = 0.05  # of the teacher's cosines
MAX_TRANSLATIONS = 20_000


@dataclass(frozen=True)
class Lists:
    """Examples by what is known about the candidates."""

    first_is_right: list[Examples]  # query, answer, negatives
    triplets: Examples  # premise, what follows, what contradicts
    scored: Examples  # query and candidates with a teacher's scores
    pairs: Examples  # two texts with a score


def lists(finder: BiEncoder, teacher: BiEncoder, made: Path, data: Path) -> Lists:
    """All of it; `finder` looks for hard negatives, `teacher` scores English."""
    sets = read(data, made)
    print(sets, flush=True)
    chosen = [each for each in (*sets.questions, *sets.passages) if len(each)]
    mined = [negatives(finder, each) for each in chosen]
    mined.append(answers(finder, data))
    scored = translations(finder, teacher, data)
    sts = joined("STS", sets.sts)
    return Lists(mined, joined("NLI", sets.triplets), scored, sts)


def negatives(finder: BiEncoder, examples: Examples) -> Examples:
    """Each query with its answer and answers to others that look like it.

    What the finder puts before the answer may be another answer, but not for a question that was made from a sentence
    of one passage: there it is the finder's error, which a re-ranker is for.
    """
    mined = mine_negatives(
        finder,
        examples,
        num_negatives=NUM_NEGATIVES,
        rank_from=0 if examples.name in MADE else 1,
        rank_to=40,
        relative_margin=None if examples.name in MADE else 0.02,
        pick="random",
        layout="columns",
    )
    print(examples.name, mined.statistics, flush=True)
    return replace(mined.examples, name=examples.name)


def answers(finder: BiEncoder, data: Path) -> Examples:
    """WikiQA's own wrong sentences are the hardest negatives of its questions; others fill up the list."""
    wiki = read_examples(file(data, "qa/wikiqa-train"), texts=("question", "sentence"), target="labels")
    wiki = drop_overlap(wiki, reported(data))
    assert wiki.labels is not None
    random = np.random.default_rng(1)
    by_question: dict[str, tuple[list[str], list[str]]] = {}
    for question, sentence, label in zip(*wiki.texts, wiki.labels.tolist(), strict=True):
        by_question.setdefault(question, ([], []))[1 - label].append(sentence)
    everything = wiki.texts[1]
    rows = []
    for question, (right, wrong) in by_question.items():
        for sentence in right:
            others = [wrong[place] for place in random.permutation(len(wrong))[:NUM_NEGATIVES].tolist()]
            while len(others) < NUM_NEGATIVES:
                others.append(everything[int(random.integers(len(everything)))])
            rows.append((question, sentence, *others))
    return Examples("WikiQA lists", tuple(list(column) for column in zip(*rows, strict=True)))


def translations(finder: BiEncoder, teacher: BiEncoder, data: Path) -> Examples:
    """A sentence in one language with the neighbours of its translation, as close as the teacher finds the English."""
    random = np.random.default_rng(1)
    pairs = zip(everyday(data), documented(data, MAX_TRANSLATIONS, random), strict=True)
    english, korean = (general + docs for general, docs in pairs)
    found, itself = finder.encode(english, progress=True), np.arange(len(english))
    _, places = nearest(found, found, 30, "cosine", (itself, itself), finder.device)
    vectors = teacher.encode(english, normalize=True, progress=True)
    texts: list[list[str]] = []
    scores = []
    for row in range(len(english)):
        near = random.permutation(places[row])[: NUM_NEGATIVES - 1]
        candidates = [row, *near.tolist(), int(random.integers(len(english)))]
        one, other = ((korean, korean), (korean, english), (english, korean))[int(random.integers(3))]
        if one is other:
            candidates = [*candidates[1:], int(random.integers(len(english)))]  # itself would be no question
        texts.append([one[row], *(other[place] for place in candidates)])
        scores.append(vectors[candidates] @ vectors[row] / TEMPERATURE)
    columns = tuple(list(column) for column in zip(*texts, strict=True))
    return drop_overlap(Examples("translations", columns, scores=np.array(scores, np.float64)), reported(data))


def summary(found: Lists) -> str:
    """The number of queries of each source."""
    parts = [*found.first_is_right, found.triplets, found.scored, found.pairs]
    return ", ".join(f"{each.name} {len(each):,}" for each in parts)


__all__ = ["Lists", "Sets", "lists", "summary"]
