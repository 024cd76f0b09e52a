"""Passages gathered from sentences that have nothing to do with each other, and a question about one of them.

Nothing but technical documentation comes with passages here. News, encyclopaedia and everyday sentences come alone: put
together they teach that a passage is about each of its sentences, names and numbers too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np

from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.writing import columns_of, write_table
from recipes.models.asked import analysed, english_query, korean_query
from recipes.models.sources import alone_of, file, reported

Pair: TypeAlias = tuple[str, str]

MAX_SENTENCES = {"ko": 9, "en": 8}  # of a passage; at least 3
ASKED = {"ko": 6, "en": 2}  # questions about a passage, at most
MIN_LENGTH = 12


def gathered(data: Path, out: Path) -> None:
    """Questions with the passages, as a table."""
    random = np.random.default_rng(8)
    avoid = reported(data)
    nli = drop_overlap(read_examples(file(data, "nli/klue-nli-train"), target="labels"), avoid)
    sts = drop_overlap(read_examples(file(data, "sts/klue-sts-train"), texts=("sentence1", "sentence2")), avoid)
    korean = list(dict.fromkeys([*nli.texts[0], *(text for text in sts.texts[0] if len(text) > 25)]))
    # here, as a sentence inside a passage is not seen as one of a reported set later
    alone = drop_overlap(alone_of(data, "en-sentences", 120_000), avoid)
    english = [text for text in alone.texts[0] if 30 < len(text) < 300]
    follows: dict[str, list[str]] = {}
    assert nli.labels is not None
    for premise, hypothesis, label in zip(*nli.texts, nli.labels.tolist(), strict=True):
        if nli.label_names[label] == "entailment":
            follows.setdefault(premise, []).append(hypothesis)
    pairs = [*_korean(korean, follows, random), *_english(english, random)]
    queries, passages = zip(*pairs, strict=True)
    table = Examples("gathered", (list(queries), list(passages)), ("query", "passage"))
    write_table(out, columns_of(table))
    print(f"{len(table):,} questions about {len(set(passages)):,} gathered passages", flush=True)


def _korean(sentences: list[str], follows: dict[str, list[str]], random: np.random.Generator) -> Iterator[Pair]:
    tokens = analysed(sentences)
    for passage, places in _passages(sentences, "ko", random):
        for place in places:
            said = follows.get(sentences[place], [])
            if said and random.random() < 0.3:
                query: str | None = said[int(random.integers(len(said)))]
            else:
                query = korean_query(tokens[place], random)
            if query and len(query) >= MIN_LENGTH:
                yield query, passage


def _english(sentences: list[str], random: np.random.Generator) -> Iterator[Pair]:
    for passage, places in _passages(sentences, "en", random):
        for place in places:
            query = english_query(sentences[place], random)
            if query:
                yield query, passage


def _passages(sentences: list[str], language: str, random: np.random.Generator) -> Iterator[tuple[str, list[int]]]:
    """Every sentence in one passage only, else others would answer its question too; and those to ask about."""
    order = random.permutation(len(sentences)).tolist()
    while order:
        count = int(random.integers(3, MAX_SENTENCES[language]))
        places, order = order[:count], order[count:]
        yield " ".join(sentences[place] for place in places), random.permutation(places)[: ASKED[language]].tolist()
