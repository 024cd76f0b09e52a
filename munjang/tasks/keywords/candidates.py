"""Candidates for keywords: the phrases of texts, each kept once for all texts."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from munjang.errors import InputError, unknown
from munjang.tasks.keywords.config import CUTS, check_ngrams
from munjang.tasks.keywords.stop_words import stop_words_of
from munjang.text.korean import Noun, composed, has_hangul, nouns
from munjang.types import Ints

WORD = re.compile(r"\b\w\w+\b")  # scikit-learn's: at least two characters
NO_WORD = re.compile(r"\b\w\b")  # what it leaves out of C#, R&D and vitamin C


@dataclass(frozen=True)
class Candidates:
    """Distinct phrases in alphabetical order, and which of them each text has."""

    phrases: list[str]
    of_texts: list[Ints]  # places in `phrases`, ascending


def find_candidates(
    texts: Sequence[str],
    ngrams: tuple[int, int] = (1, 1),
    stop_words: str | Collection[str] = "english",
    cut: str = "auto",
    min_texts: int = 1,
    progress: bool | None = False,
) -> Candidates:
    """Find all phrases of `ngrams` words that at least `min_texts` texts have.

    Words are scikit-learn's (CountVectorizer), stop words removed before phrases are made. Korean phrases are of nouns
    without their particles: 대한민국의 수도는 gives 대한민국, 수도 and, of two words, 대한민국의 수도.

    >>> find_candidates(["the red apple"], ngrams=(1, 2)).phrases
    ['apple', 'red', 'red apple']
    """
    check_ngrams(ngrams)
    ignored = stop_words_of(stop_words)
    found = [set(phrases) for phrases in phrases_of(texts, ngrams, ignored, cut, progress)]
    if min_texts > 1:
        counts = Counter(phrase for phrases in found for phrase in phrases)
        found = [{phrase for phrase in phrases if counts[phrase] >= min_texts} for phrases in found]
    return _numbered(found)


def given_candidates(
    texts: Sequence[str], candidates: Sequence[str] | Sequence[Sequence[str]], stop_words: str | Collection[str]
) -> Candidates:
    """Take given phrases: a list for every text as it is, or of one list for all those that each text has."""
    if isinstance(candidates, str):
        raise InputError(f"The candidates should be a list of phrases, not one string, {candidates!r:.60}.")
    if not len(candidates) and len(texts):
        raise InputError("There are no candidates; give some phrases, or leave candidates out.")
    if any(isinstance(each, str) for each in candidates):
        return _spoken(texts, _phrases(candidates, "candidates"), stop_words_of(stop_words))
    if len(candidates) != len(texts):
        raise InputError(
            f"There are {len(candidates)} lists of candidates for {len(texts)} texts; give one list for each text, "
            "or one list of phrases for all."
        )
    return _numbered([set(_phrases(each, f"candidates of text {row}")) for row, each in enumerate(candidates)])


def phrases_of(
    texts: Sequence[str],
    ngrams: tuple[int, int],
    ignored: frozenset[str],
    cut: str = "auto",
    progress: bool | None = False,
) -> Iterator[list[str]]:
    """Return the phrases of each text, as often as it has them."""
    if cut not in CUTS:
        raise unknown("way to cut texts", cut, CUTS)
    texts = composed(texts)
    is_nouns = [cut == "nouns" or (cut == "auto" and has_hangul(text)) for text in texts]
    cut_nouns = iter(nouns([text for text, is_noun in zip(texts, is_nouns, strict=True) if is_noun], progress))
    for text, is_noun in zip(texts, is_nouns, strict=True):
        if is_noun:
            yield _noun_phrases(next(cut_nouns), ngrams, ignored)
        else:
            words = [word for word in WORD.findall(text.lower()) if word not in ignored]
            yield list(_word_phrases(words, ngrams))


def _word_phrases(words: list[str], ngrams: tuple[int, int]) -> Iterator[str]:
    for length in range(ngrams[0], ngrams[1] + 1):
        if length == 1:
            yield from words
        else:
            yield from map(" ".join, zip(*(words[start:] for start in range(length)), strict=False))


def _noun_phrases(row: list[Noun], ngrams: tuple[int, int], ignored: frozenset[str]) -> list[str]:
    found = []
    for start in range(len(row)):
        phrase = ""
        for length, (noun, joiner) in enumerate(row[start : start + ngrams[1]], 1):
            if noun in ignored:
                break
            phrase += noun
            if length >= ngrams[0] and len(phrase) > 1:  # as with words, one character says little by itself
                found.append(phrase)
            if joiner is None:
                break
            phrase += joiner
    return found


def _spoken(texts: Sequence[str], wanted: list[str], ignored: frozenset[str]) -> Candidates:
    """Find which texts have which phrases, in any case; KeyBERT finds only lower case without stop words."""
    by_words: dict[str, list[str]] = defaultdict(list)
    as_written: list[tuple[str, str, re.Pattern[str]]] = []
    for phrase, key in zip(wanted, map(_folded, composed(wanted)), strict=True):
        is_words = WORD.search(key) is not None and NO_WORD.search(key) is None
        if is_words:
            by_words[" ".join(WORD.findall(key))].append(phrase)
        if not is_words or has_hangul(key):  # a particle may follow: 서울 is in 서울에서
            as_written.append((phrase, key, _pattern(key)))
    longest = max((len(key.split(" ")) for key in by_words), default=1)
    every: list[set[str]] = [set() for _ in texts]
    for removed in (ignored, frozenset[str]()):
        for found, phrases in zip(every, phrases_of(texts, (1, longest), removed, "words"), strict=True):
            found.update(chain.from_iterable(by_words[phrase] for phrase in phrases if phrase in by_words))
    for found, text in zip(every, map(_folded, composed(texts)), strict=True):
        found.update(phrase for phrase, key, pattern in as_written if key in text and pattern.search(text))
    return _numbered(every)


def _folded(text: str) -> str:
    return " ".join(text.lower().split())


def edges(phrase: str) -> tuple[str, str]:
    """Return patterns of what may stand before and after a phrase: no part of a word, but particles may follow.

    장에 is not in 시장에 and cat not in category; 장에 is in 장에서 and SNS in SNS를.
    """
    before = r"(?<![가-힣])" if has_hangul(phrase[0]) else r"(?<!\w)" if phrase[0].isalnum() else ""
    after = r"(?![^\W가-힣])" if phrase[-1].isalnum() and not has_hangul(phrase[-1]) else ""
    return before, after


def _pattern(key: str) -> re.Pattern[str]:
    before, after = edges(key)
    return re.compile(before + re.escape(key) + after)


def _numbered(found: Sequence[Iterable[str]]) -> Candidates:
    phrases = sorted({phrase for each in found for phrase in each})
    places = {phrase: place for place, phrase in enumerate(phrases)}
    return Candidates(phrases, [np.array(sorted(places[phrase] for phrase in each), np.int64) for each in found])


def _phrases(given: Iterable[object], what: str) -> list[str]:
    phrases = list(given)
    for phrase in phrases:
        if not isinstance(phrase, str):
            raise InputError(f"The {what} should all be strings, not {phrase!r:.60} ({type(phrase).__name__}).")
    return [phrase for phrase in phrases if isinstance(phrase, str) and phrase.strip()]
