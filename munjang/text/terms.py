"""The words of a text for BM25: Korean by morphemes where kiwipiepy is installed, else by pairs of syllables."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise

from munjang.text.korean import has_kiwi, kiwi

WORD = re.compile(r"[^\W_]+")
HANGUL = re.compile(r"[가-힣]+")
# what carries meaning: nouns, verb and adjective stems, roots, adverbs, foreign words, numbers, Chinese characters
MEANINGFUL = ("N", "VV", "VA", "XR", "MAG", "SL", "SN", "SH")


def terms(texts: Sequence[str]) -> list[str]:
    """Each text as its words, put together with spaces.

    >>> terms(["Running shoes, 2 pairs"])
    ['running shoes 2 pairs']
    """
    cut = _morphemes if has_kiwi() else _syllables
    return [" ".join(_words(text, cut)) for text in texts]


def method() -> str:
    """How texts are cut here; an index of another method finds less."""
    return "kiwi" if has_kiwi() else "syllables"


def _words(text: str, cut: Callable[[str], list[str]]) -> list[str]:
    normal = unicodedata.normalize("NFKC", text).lower()
    found: list[str] = []
    for word in WORD.findall(normal):
        found += cut(word) if HANGUL.search(word) else [word]
    return found


def _syllables(word: str) -> list[str]:
    """Overlapping pairs: 학교에서 is 학교, 교에, 에서. They find a noun whatever particle follows it."""
    found: list[str] = []
    for piece in re.findall(r"[가-힣]+|[^가-힣]+", word):
        is_hangul = HANGUL.fullmatch(piece) is not None
        found += ["".join(pair) for pair in pairwise(piece)] if is_hangul and len(piece) > 1 else [piece]
    return found


def _morphemes(word: str) -> list[str]:
    found = [token.form for token in kiwi().tokenize(word) if token.tag.startswith(MEANINGFUL)]
    return found or [word]
