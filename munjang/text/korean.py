"""Korean words: the nouns of a text without their particles, and the parts of a word that carry meaning.

Both come from the morphemes of Kiwi where kiwipiepy is installed; else nouns are words without their endings, and the
parts of a word its pairs of syllables.
"""

import re
import threading
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, TypeAlias

from munjang.progress import Progress

# A noun, and what joins it to the next one in a phrase: " ", "의 ", or None where the phrase ends.
Noun: TypeAlias = tuple[str, str | None]

NOUNS = ("NNG", "NNP", "SL", "SH")  # common and proper nouns, foreign words, Chinese characters
PARTS = (*NOUNS, "XPN", "XSN", "XR", "SN")  # what may stand inside a compound: prefix, suffix, root, number
OF = "JKG"  # 의
# what carries meaning: nouns, verb and adjective stems, roots, adverbs, foreign words, numbers, Chinese characters
MEANINGFUL = ("N", "VV", "VA", "XR", "MAG", "SL", "SN", "SH")
# Morphemes that every question has: they say nothing about its subject
STOP_WORDS = frozenset(
    (
        *("하", "되", "있", "없", "이", "그", "저", "것", "수", "등", "때", "어떻", "어떤", "무엇", "뭐", "누구"),
        *("어디", "언제", "왜", "어느", "몇", "얼마", "잘", "더", "안", "못", "좀", "너무", "많이", "매우", "아주"),
        *("정말", "좋", "싶"),
    )
)
HANGUL = re.compile(r"[가-힣]+")
RUN = re.compile(r"[가-힣]+|[^가-힣]+")
WORD = re.compile(r"[^\W_]+")
GAP = re.compile(r"[ \t]+")
# Particles and endings that follow nouns
ENDINGS = """
    은 는 이 가 을 를 의 에 도 로 와 과 만 에서 에게 한테 께서 까지 부터 으로 이나 처럼 보다 라는
    이라는 에는 에도 에서는 에서도 으로는 으로도 로는 로서 으로서 로써 으로써 이며 이고 하고 이란 이다
    입니다 였다 이었다 한다 했다 하는 하여 해서 된다 되는 되었다 됐다 들이 들을 들은 들의
"""
PARTICLES = frozenset(ENDINGS.split())
MAX_PARTICLE_SYLLABLES = max(map(len, PARTICLES))
MIN_STEM_SYLLABLES = 2  # left of a word: most words of one are no nouns

_lock = threading.Lock()


@cache
def has_kiwi() -> bool:
    """Tell whether Korean is cut by morphemes here."""
    return find_spec("kiwipiepy") is not None


def kiwi() -> Any:
    """Return the analyser, loaded on first use and for any number of threads: it takes a second and hundreds of MB."""
    with _lock:  # else threads that come at once would load one each
        return _loaded()


@cache
def _loaded() -> Any:
    from kiwipiepy import Kiwi

    return Kiwi()


def cut_word(word: str) -> list[str]:
    """Cut a word with Hangul into what carries meaning: its morphemes, or without kiwipiepy its pairs of syllables."""
    if not has_kiwi():
        return syllable_pairs(word)
    return [token.form for token in kiwi().tokenize(word) if token.tag.startswith(MEANINGFUL)] or [word]


def syllable_pairs(word: str) -> list[str]:
    """Cut 학교에서 into 학교, 교에, 에서: overlapping pairs find a noun whatever particle follows it."""
    pairs: list[str] = []
    for run in RUN.findall(word):
        is_long_hangul = len(run) > 1 and HANGUL.fullmatch(run) is not None
        pairs += ["".join(pair) for pair in pairwise(run)] if is_long_hangul else [run]
    return pairs


def stem_pairs(word: str) -> list[str]:
    """Cut 학교에서 into 학교: without pairs that reach into a particle, as 수도가 would find 밀도가 by 도가."""
    pairs = syllable_pairs(word)
    return pairs[: len(pairs) - max((len(ending) for _, ending in _ways(word)), default=0)]


def nouns(texts: Sequence[str], progress: bool | None = False) -> list[list[Noun]]:
    """Return the nouns of each text in their order, compounds whole, in lower case.

    >>> nouns(["대한민국의 수도는 서울특별시이다."])
    [[('대한민국', '의 '), ('수도', None), ('서울특별시', None)]]
    """
    normal = composed(texts)
    return _by_morphemes(normal, progress) if has_kiwi() else by_endings(normal)


def composed(texts: Iterable[str]) -> list[str]:
    """Write each syllable as one character: macOS writes its letters, which look the same."""
    return [unicodedata.normalize("NFC", text) for text in texts]


def has_hangul(text: str) -> bool:
    """Tell whether a text is Korean, if only in part."""
    return HANGUL.search(text) is not None


def _by_morphemes(texts: list[str], progress: bool | None) -> list[list[Noun]]:
    nouns_of_texts = []
    with Progress(len(texts), "cutting Korean texts", enabled=progress) as counter:
        for text, tokens in zip(texts, kiwi().tokenize(texts), strict=True):  # in threads of its own
            nouns_of_texts.append(_join(text, tokens))
            counter.advance()
    return nouns_of_texts


def _join(text: str, tokens: Sequence[Any]) -> list[Noun]:
    """Put morphemes that touch each other together, and say what stands between them and the next."""
    places: list[tuple[int, int]] = []  # of nouns
    of: set[int] = set()  # where a 의 ends
    end, has_noun, start = -1, False, 0
    for token in (*tokens, None):
        is_part = token is not None and token.tag in PARTS
        if has_noun and not (is_part and token.start == end):
            places.append((start, end))
            has_noun = False
        if token is None:
            break
        if is_part:
            start = token.start if token.start != end else start
            end = token.start + token.len
            has_noun = has_noun or token.tag in NOUNS
        else:
            end = -1
            if token.tag == OF:
                of.add(token.start + token.len)
    row: list[Noun] = []
    for number, (start, end) in enumerate(places):
        following = places[number + 1][0] if number + 1 < len(places) else end
        noun = " ".join(text[start:end].lower().split())  # kiwi knows some terms of two words
        if noun.find(".") == len(noun) - 1:  # it takes the full stop of "I can swim.." too; U.S. keeps its own
            noun = noun[:-1] or noun
        row.append((noun, _joiner(text, end, following, of)))
    return row


def _joiner(text: str, end: int, following: int, of: set[int]) -> str | None:
    if GAP.fullmatch(text, end, following):
        return " "
    return "의 " if end + 1 in of and GAP.fullmatch(text, end + 1, following) else None


def by_endings(texts: Sequence[str]) -> list[list[Noun]]:
    """Return words without what looks like a particle, where there is no kiwipiepy. Verbs are not left out."""
    words_of_texts = [
        [(match[0].lower(), match.start(), match.end()) for match in WORD.finditer(text)] for text in texts
    ]
    stems = _stems({word for words in words_of_texts for word, _, _ in words})
    cut: list[list[Noun]] = []
    for text, words in zip(texts, words_of_texts, strict=True):
        row: list[Noun] = []
        for place, (word, _, end) in enumerate(words):
            following = words[place + 1][1] if place + 1 < len(words) else end
            is_whole = stems[word] == word
            row.append((stems[word], " " if is_whole and GAP.fullmatch(text, end, following) else None))
        cut.append(row)
    return cut


def _stems(words: set[str]) -> dict[str, str]:
    """Find the stem of each word: of all ways to cut it, the one that is seen with the most endings in all words.

    That tells 고양이 from 고양 + 이 once 고양이가 or 고양이를 is seen too.
    """
    ways = {word: [(word, ""), *_ways(word)] for word in words}
    endings: dict[str, set[str]] = defaultdict(set)
    for cuts in ways.values():
        for stem, ending in cuts:
            endings[stem].add(ending)
    # Seen once, a word loses its longest particle: 학교에서 is 학교
    return {word: min(cuts, key=lambda way: (-len(endings[way[0]]), len(way[0])))[0] for word, cuts in ways.items()}


def _ways(word: str) -> list[tuple[str, str]]:
    if not HANGUL.fullmatch(word):
        return []
    places = range(max(MIN_STEM_SYLLABLES, len(word) - MAX_PARTICLE_SYLLABLES), len(word))
    return [(word[:place], word[place:]) for place in places if word[place:] in PARTICLES]
