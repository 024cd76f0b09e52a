"""Units of text that exist in both languages: a question, and the passage that answers it, each in English and Korean.

Lists of one language unlearn the way across languages that the encoder knows. In lists of units a question of either
language has its right passage in the other one or in its own, and wrong ones in both, so language tells nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.types import Ints
from recipes.models.asked import analysed, english_query, korean_query, passages_of
from recipes.models.sources import documentation, everyday, file, is_heading, is_sentence, read_table, reported

COLUMNS = ("query_en", "query_ko", "passage_en", "passage_ko")
Unit: TypeAlias = tuple[str, str, str, str]  # as in COLUMNS
NUM_SENTENCES = range(3, 7)  # of a passage that is put together
MIN_QUERY = 12  # characters
SAME = 4.0  # similarity of 5 from which two sentences say the same


@dataclass(frozen=True)
class Layout:
    """How the passages of a list are put in languages: that of the right one, and of each wrong one."""

    weight: float
    right_is_other: bool  # than the question's
    wrong_are_other: bool | None  # None: either, by chance


LAYOUTS = (Layout(0.5, True, None), Layout(0.25, True, True), Layout(0.25, False, None))


def documents(data: Path) -> Iterator[Unit]:
    """Yield questions made from a sentence of documentation, with the sentences around it."""
    random = np.random.default_rng(31)
    docs = documentation(data)
    passages = list(passages_of(docs, random))
    chosen = [passages[place] for place in random.permutation(len(passages))[:MAX_MADE].tolist()]
    morphemes = analysed([docs["ko"][row] for _, row in chosen])
    for (rows, row), tokens in zip(chosen, morphemes, strict=True):
        yield from _asked(docs["en"][row], tokens, [docs["en"][each] for each in rows],
                          [docs["ko"][each] for each in rows], random)  # fmt: skip


def headings(data: Path) -> Iterator[Unit]:
    """Yield headings of documentation with the text below them."""
    docs = documentation(data)
    for row in range(len(docs["en"]) - 4):
        if is_heading(docs, row):
            below = [row + 1, row + 2]
            while len(below) < 4 and is_sentence(docs, row, below[-1] + 1):
                below.append(below[-1] + 1)
            yield docs["en"][row], docs["ko"][row], _joined(docs["en"], below), _joined(docs["ko"], below)


def sentences(data: Path) -> Iterator[Unit]:
    """Yield everyday sentences as their own questions, and pairs of sentences that say the same."""
    for english, korean in zip(*everyday(data), strict=True):
        yield english, korean, english, korean
    names = ("sentence1_en", "sentence1_ko", "sentence2_en", "sentence2_ko")
    pairs = read_examples(file(data, "sts/stsb-en-ko-train"), texts=names, target="scores", score_range=(0, 5))
    assert pairs.scores is not None
    alike = pairs.take(np.flatnonzero(np.asarray(pairs.scores) * 5 >= SAME).tolist())
    yield from zip(*alike.texts, strict=True)


def gathered(data: Path) -> Iterator[Unit]:
    """Yield passages of everyday sentences that have nothing to do with each other, and a question about one."""
    random = np.random.default_rng(33)
    both = [pair for pair in dict.fromkeys(zip(*everyday(data), strict=True)) if 25 < len(pair[0]) < 300]
    morphemes = analysed([korean for _, korean in both])
    order = random.permutation(len(both)).tolist()
    while len(order) >= NUM_SENTENCES.start:
        count = int(random.integers(NUM_SENTENCES.start, NUM_SENTENCES.stop))
        places, order = order[:count], order[count:]
        texts = [[both[place][side] for place in places] for side in (0, 1)]
        for place in random.permutation(places)[:2].tolist():
            yield from _asked(both[place][0], morphemes[place], texts[0], texts[1], random)


MAX_MADE = 30_000  # passages of documentation that a question is made for


def _asked(
    english: str, tokens: list[object], in_english: list[str], in_korean: list[str], random: np.random.Generator
) -> Iterator[Unit]:
    one, other = english_query(english, random), korean_query(tokens, random)
    if one and other and min(len(one), len(other)) >= MIN_QUERY:
        yield one, other, " ".join(in_english), " ".join(in_korean)


def clean(data: Path, units: list[Unit]) -> list[Unit]:
    """Drop units that share a sentence with a reported set, and those of which a text stood before."""
    kept = drop_overlap(Examples("units", tuple(map(list, zip(*units, strict=True))), COLUMNS), reported(data))
    seen: set[str] = set()
    found = []
    for unit in zip(*kept.texts, strict=True):
        if seen.isdisjoint(unit) and all(unit):
            found.append((unit[0], unit[1], unit[2], unit[3]))
        seen.update(unit)
    return found


def is_across(path: Path) -> bool:
    """Tell whether a table of pairs holds units."""
    with path.open(encoding="utf-8") as lines:
        return next(lines).rstrip("\n").split("\t") == list(COLUMNS)


def read_units(path: Path) -> tuple[list[str], list[str]]:
    """Return questions and passages, first all in English, then all in Korean."""
    table = read_table(path, COLUMNS)
    return table["query_en"] + table["query_ko"], table["passage_en"] + table["passage_ko"]


def put_in_languages(
    rows_NK: Ints, num_units: int, is_same: list[bool], random: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the number of each list's question, and of its passages, from units [N lists, K], the right one first.

    `is_same`: of each list's unit, whether question and passage are equal, so that the passage has to be a translation.
    """
    num_lists, width = rows_NK.shape
    passages_NK: Ints = rows_NK.copy()
    is_korean_N = np.zeros(num_lists, dtype=bool)  # the question
    chosen_N = random.choice(len(LAYOUTS), num_lists, p=[layout.weight for layout in LAYOUTS])
    for at in range(num_lists):
        layout = LAYOUTS[int(chosen_N[at])]
        if is_same[at] and not layout.right_is_other:
            layout = LAYOUTS[0]
        is_korean_N[at] = random.random() < 0.5
        is_other_K = random.random(width) < 0.5
        if layout.wrong_are_other is not None:
            is_other_K[:] = layout.wrong_are_other
        is_other_K[0] = layout.right_is_other
        passages_NK[at] += num_units * (is_other_K != is_korean_N[at])
    return rows_NK[:, 0] + num_units * is_korean_N, passages_NK


def _joined(texts: list[str], rows: list[int]) -> str:
    return " ".join(texts[row] for row in rows)
