"""The texts that benchmarks measure with: English short, Korean short, mixed lengths, long documents, duplicates.

From the repository's own words, or from a data folder with text/ and retrieval/ (one text a line, or tables).
"""

import random
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from munjang.data.tables import read_texts
from tests.texts import ENGLISH, KOREAN, mixed

DUPLICATED = 0.3  # share of the texts that occur before
LONG_SHARE = 4  # a long document costs as much as many sentences: so many times fewer of them
FILES = {
    "english": "text/en-sentences.txt.xz",
    "korean": "text/ko-reviews.txt.xz",
    "english long": "retrieval/cranfield/corpus.tsv.xz",
    "korean long": "retrieval/korquad/corpus.tsv.xz",
}


def corpora(count: int, data: Path | None = None) -> dict[str, list[str]]:
    """Texts by the corpus' name, the same for everyone who asks with the same numbers."""
    found = _from_words(count) if data is None else _from_files(count, data)
    return {**found, "30 % duplicates": repeated(found["English short"], DUPLICATED)}


def repeated(texts: list[str], share: float) -> list[str]:
    """As many texts, this share of them copies of the others, in random order."""
    random_ = random.Random(3)
    num_copies = round(len(texts) * share)
    kept = texts[: len(texts) - num_copies]
    result = kept + random_.choices(kept, k=num_copies)
    random_.shuffle(result)
    return result


def _from_words(count: int) -> dict[str, list[str]]:
    return {
        "English short": [_line(ENGLISH, row, 5, 35) for row in range(count)],
        "Korean short": [_line(KOREAN, row, 3, 15) for row in range(count)],
        "mixed lengths": mixed(count, longest=250),
        "long documents": [
            _line(words, row, 150, 400)
            for row, words in zip(range(count // LONG_SHARE), [ENGLISH, KOREAN] * count, strict=False)
        ],
    }


def _line(words: list[str], seed: int, fewest: int, most: int) -> str:
    random_ = random.Random(seed)
    return " ".join(random_.choices(words, k=random_.randint(fewest, most)))


def _from_files(count: int, data: Path) -> dict[str, list[str]]:
    lines = {name: shuffled(read_texts(data / path), 40 * count) for name, path in FILES.items()}
    both = [text for pair in zip(lines["english"], lines["korean"], strict=False) for text in pair][2 * count :]
    lengths = random.Random(1).choices([1, 1, 1, 1, 2, 3, 5, 8], k=count)
    starts = [sum(lengths[:row]) for row in range(count)]
    long = [text for pair in zip(lines["english long"], lines["korean long"], strict=False) for text in pair]
    return {
        "English short": lines["english"][:count],
        "Korean short": lines["korean"][:count],
        "mixed lengths": [" ".join(both[at : at + length]) for at, length in zip(starts, lengths, strict=True)],
        "long documents": long[: count // LONG_SHARE],
    }


def shuffled(texts: Iterable[str], most: int) -> list[str]:
    """Return the first texts that are not empty, in an order that is always the same."""
    found = [text for text in islice(texts, most) if text.strip()]
    random.Random(0).shuffle(found)
    return found
