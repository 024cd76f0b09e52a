"""The words of a text: for people to read, and for BM25 to match; Korean ones cut further, into what carries meaning.

BM25 matches Korean by morphemes and by pairs of syllables beside them: where the analyser takes a noun and its particle
for one word, as it may with new names, a pair inside the noun still finds it. English is matched by stems.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from munjang.text import english, korean

WORD = re.compile(r"[^\W_]+")
MAX_KNOWN_WORDS = 1 << 17  # whose cuts are remembered: tens of MB; few words make up most of a text


def terms(texts: Sequence[str]) -> list[str]:
    """Return each text as its words, put together with spaces, for people to read.

    >>> terms(["Running shoes, 2 pairs"])
    ['running shoes 2 pairs']
    """
    return [" ".join(words_of(text)) for text in texts]


def words_of(text: str) -> list[str]:
    """Return the words of a text; of Korean ones the parts that carry meaning."""
    return [part for word in WORD.findall(normal(text)) for part in parts_of(word)]


def search_terms(texts: Sequence[str]) -> list[str]:
    """Return what BM25 matches of each text, put together with spaces.

    >>> search_terms(["Running shoes, 2 pairs"])
    ['runn shoe 2 pair']
    """
    return [" ".join(term for word in WORD.findall(normal(text)) for term in _terms(word)) for text in texts]


def query_terms(text: str) -> list[str]:
    """Return what BM25 looks for: all but words without meaning, unless there are no others.

    >>> query_terms("What is the stall?")
    ['stall']
    """
    words = WORD.findall(normal(text))
    meaningful = [word for word in words if _has_meaning(word)] or words
    return [term for word in meaningful for term in _terms(word, korean.stem_pairs)]


def _has_meaning(word: str) -> bool:
    """Tell 때 and 어떻게, which are in any question, from what it is about."""
    if not korean.has_hangul(word):
        return word not in english.STOP_WORDS
    return not set(_morphemes(word)) <= korean.STOP_WORDS


def method() -> str:
    """Say how `search_terms` cuts texts here; what one method has cut, the other finds too, if less of it."""
    return "stems, morphemes and syllables" if korean.has_kiwi() else "stems and syllables"


def normal(text: str) -> str:
    """Write a text as words are compared."""
    return unicodedata.normalize("NFKC", text).lower()


def parts_of(word: str) -> tuple[str, ...]:
    """Return what carries meaning in a word in normal form."""
    return _morphemes(word) if korean.has_hangul(word) else (word,)


def _terms(word: str, cut: Callable[[str], list[str]] = korean.syllable_pairs) -> tuple[str, ...]:
    if not korean.has_hangul(word):
        return (english.stem(word),)
    # Together they beat either alone on three of four sets (docs/log.md)
    return (*(_morphemes(word) if korean.has_kiwi() else ()), *cut(word))


@lru_cache(MAX_KNOWN_WORDS)
def _cut(word: str, has_kiwi: bool) -> tuple[str, ...]:
    return tuple(korean.cut_word(word))


def _morphemes(word: str) -> tuple[str, ...]:
    return _cut(word, korean.has_kiwi())
