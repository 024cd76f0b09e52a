"""Questions about bills: whole Korean passages, each about one thing, which neither documentation nor sentences are.

DATA/text/ko-bills.tsv is what more.py makes of 60,925 bills of the National Assembly with their reasons (Kyusik Yang,
korean-assembly-bills, CC BY 4.0). Needs kiwipiepy.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from munjang.data.reading import read_examples
from recipes.ko_en_small.asked import analysed, korean_query, write_asked
from recipes.ko_en_small.data import file

COUNT = 45_000
MAX_PASSAGE = 900  # characters; KorQuAD's, which are not looked at here, are as long
# a sentence of a bill ends as a noun does; numbers have points too
SENTENCE = re.compile(r"(?:[^.]|\.(?=\d))+[가-힣]\.")
ASKED_ABOUT = range(25, 160)


class Morpheme(NamedTuple):
    """A morpheme, as `korean_query` takes it."""

    form: str
    tag: str


def bills(data: Path, out: Path) -> None:
    """Questions with the passages they were made from, as a table."""
    random = np.random.default_rng(9)
    texts = read_examples(file(data, "text/ko-bills"), texts=("text",)).texts[0]
    chosen = []
    for place in random.permutation(len(texts))[:COUNT].tolist():
        sentences = passage_of(texts[place])
        good = [each for each in sentences if len(each) in ASKED_ABOUT]
        if good and len(sentences) > 1:
            chosen.append((" ".join(sentences), good[int(random.integers(len(good)))]))
    morphemes = analysed([sentence for _, sentence in chosen])
    pairs = ((korean_query(ended(each), random), passage) for (passage, _), each in zip(chosen, morphemes, strict=True))
    print(f"{write_asked('bills', pairs, out):,} of {len(chosen):,} bills have a question", flush=True)


def passage_of(text: str) -> list[str]:
    """The first sentences of a text."""
    found: list[str] = []
    for sentence in SENTENCE.findall(text):
        if sum(map(len, found)) + len(sentence.strip()) > MAX_PASSAGE:
            break
        found.append(sentence.strip())
    return found


def ended(tokens: Iterable[Any]) -> list[Morpheme]:
    """A sentence that ends as a noun (있음, 것임) as one that ends as a verb."""
    found = [Morpheme(token.form, token.tag) for token in tokens]
    if len(found) > 1 and (found[-2].tag, found[-1].tag) == ("ETN", "SF"):
        found[-2] = found[-2]._replace(tag="EF")
    return found
