"""The words of a text for BM25: Korean ones cut further, into what carries meaning."""

import re
import unicodedata
from collections.abc import Sequence

from munjang.text import korean

WORD = re.compile(r"[^\W_]+")


def terms(texts: Sequence[str]) -> list[str]:
    """Return each text as its words, put together with spaces.

    >>> terms(["Running shoes, 2 pairs"])
    ['running shoes 2 pairs']
    """
    return [" ".join(_words(text)) for text in texts]


def method() -> str:
    """Say how texts are cut here; an index of another method finds less."""
    return "kiwi" if korean.has_kiwi() else "syllables"


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        words += korean.cut_word(word) if korean.has_hangul(word) else [word]
    return words
