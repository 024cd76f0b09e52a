"""Questions that nobody asked: made from sentences, for passages of which no question is known.

A noun is asked for and the sentence ends as a question does, or only its nouns are left, as in a search box. Such
questions are clumsy, but they are many, and those who learn from them find what people ask for (Lewis et al. 2019,
Unsupervised Question Answering by Cloze Translation). Needs kiwipiepy.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from munjang.data.examples import Examples
from munjang.data.writing import columns_of, write_table
from munjang.text.korean import NOUNS, PARTS, kiwi
from recipes.models.sources import documentation, once

Asked: TypeAlias = tuple[str | None, str]  # a question, where one could be made, and its passage

# what a noun is asked with, by the particle behind it
ASKED = {
    "JKS": ("무엇", "누구", "어떤 것"),
    "JKO": ("무엇", "어떤 것", "누구"),
    "JKB": ("무엇", "어디", "어떤 것", "언제"),
    "JX": ("무엇", "어떤 것"),
    "JKG": ("무엇", "누구"),
}
ENDINGS = ("는가", "나요", "니", "는지", "을까")
LANGUAGES = ("ko ko", "ko ko", "ko ko", "ko en", "en ko", "en en", "en en")  # of a question and its passage
COUNT = 60_000
MIN_LENGTH = 12
# a sentence ends as a noun or a verb does; numbers have points too
SENTENCE = re.compile(r"(?:[^.]|\.(?=\d))+[가-힣]\.")
ASKED_ABOUT = range(25, 160)  # characters of a sentence that a question is made of
WORD = re.compile(r"[A-Za-z][A-Za-z0-9'-]*")
STOP = """
    a an and are as at be been but by can could do does for from had has have if in into is it its may more must no not
    of on one or other should so such than that the their them then there these they this those to two use used using
    was were when where which while will with would you your
"""
COMMON = frozenset(STOP.split())


def asked(data: Path, out: Path) -> None:
    """Questions with the passages they were made from, in both languages, as a table."""
    random = np.random.default_rng(5)
    docs = documentation(data)
    passages = list(passages_of(docs, random))
    chosen = [passages[place] for place in random.permutation(len(passages))[:COUNT].tolist()]
    morphemes = analysed([docs["ko"][row] for _, row in chosen])

    def pairs() -> Iterator[Asked]:
        for (rows, row), tokens in zip(chosen, morphemes, strict=True):
            one, other = LANGUAGES[int(random.integers(len(LANGUAGES)))].split()
            query = korean_query(tokens, random) if one == "ko" else english_query(docs["en"][row], random)
            yield query, " ".join(docs[other][each] for each in rows)

    count = write_asked("asked", pairs(), out)
    print(f"{count:,} of {len(passages):,} passages have a question", flush=True)


def write_asked(name: str, pairs: Iterable[Asked], out: Path) -> int:
    """Write questions that are long enough with their passages, none twice, and say how many."""
    queries, passages = [], []
    for query, passage in pairs:
        if query and len(query) >= MIN_LENGTH:
            queries.append(query)
            passages.append(passage)
    table = once(Examples(name, (queries, passages), ("query", "passage")))
    write_table(out, columns_of(table))
    return len(table)


def passages_of(docs: dict[str, list[str]], random: np.random.Generator) -> Iterator[tuple[range, int]]:
    """Rows that follow each other in a page, most of them translated by people, and one that will be asked about."""
    human = np.array([kind == "HT" for kind in docs["kind"]])
    source = np.array(docs["source"])
    start = 0
    while start < len(source) - 10:
        rows = range(start, start + int(random.integers(3, 9)))
        start = rows.stop
        is_one = source[rows.start] == source[rows.stop - 1] and human[rows.start : rows.stop].mean() > 0.7
        good = [row for row in rows if human[row] and 25 < len(docs["ko"][row]) < 160 and docs["ko"][row].endswith(".")]
        if is_one and good:
            yield rows, int(random.choice(good))


def korean_query(tokens: list[Any], random: np.random.Generator) -> str | None:
    """A question, or nouns as people type them."""
    nouns = [(start, stop) for start, stop in _noun_runs(tokens) if stop < len(tokens)]
    if len(nouns) >= 3 and random.random() < 0.35:
        return _only_nouns(tokens, nouns, random)
    asked_for = [run for run in nouns if tokens[run[1]].tag in ASKED]
    ends = [place for place, token in enumerate(tokens) if token.tag == "EF"]
    if not asked_for or not ends:
        return None
    start, stop = asked_for[int(random.integers(len(asked_for)))]
    if ends[-1] < stop:
        return None
    words = ASKED[tokens[stop].tag]
    word = words[int(random.integers(len(words)))]
    replaced = [(part, "NP" if part != "어떤" else "MM") for part in word.split()]
    first = _beginning(tokens, start, random)
    before = [(token.form, token.tag) for token in tokens[first:start]]
    after = [(token.form, token.tag) for token in tokens[stop : ends[-1]]]
    ending = (ENDINGS[int(random.integers(len(ENDINGS)))], "EF")
    question: str = kiwi().join([*before, *replaced, *after, ending, ("?", "SF")])
    return question


def _only_nouns(tokens: list[Any], nouns: list[tuple[int, int]], random: np.random.Generator) -> str:
    count = min(len(nouns), int(random.integers(3, 7)))
    kept = sorted(random.permutation(len(nouns))[:count].tolist())
    runs = [nouns[place] for place in kept]
    return " ".join("".join(token.form for token in tokens[start:stop]) for start, stop in runs)


def _beginning(tokens: list[Any], before: int, random: np.random.Generator) -> int:
    """Return where the question begins: with the sentence, or after a clause of it."""
    breaks = [place + 1 for place, token in enumerate(tokens[:before]) if token.tag in ("EC", "SP")]
    return int(random.choice(breaks)) if breaks and random.random() < 0.5 else 0


def _noun_runs(tokens: list[Any]) -> Iterator[tuple[int, int]]:
    start = None
    for place, token in enumerate(tokens):
        is_part = token.tag in (NOUNS if start is None else PARTS)
        if is_part and start is None:
            start = place
        if not is_part and start is not None:
            yield start, place
            start = None


def english_query(text: str, random: np.random.Generator) -> str | None:
    """Turn an English sentence into a query: one word asked for, or the words that say something."""
    words = WORD.findall(text)
    telling = [place for place, word in enumerate(words) if len(word) > 2 and word.lower() not in COMMON]
    if len(telling) < 3:
        return None
    if random.random() < 0.4:
        kept = sorted(random.permutation(telling)[: int(random.integers(3, 7))].tolist())
        return " ".join(words[place] for place in kept)
    gone = int(random.choice(telling))
    return " ".join(["what" if place == gone else word for place, word in enumerate(words)]) + "?"


def analysed(sentences: list[str]) -> list[list[Any]]:
    """The morphemes of each."""
    return [list(tokens) for tokens in kiwi().tokenize(sentences)]
