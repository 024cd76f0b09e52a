"""The words that tell a group of texts from the others: class-based TF-IDF, Korean and English."""

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import chain

from munjang.errors import InputError
from munjang.text.korean import composed, has_hangul, nouns
from munjang.text.terms import WORD, terms

Terms = tuple[tuple[str, float], ...]
POOL_FACTOR = 3  # terms that are looked at for each one that is kept
NOUN = "noun"  # begins a number that stands for a Korean noun

# Words that every English text has; of Korean, particles and endings never come out of `terms`.
ENGLISH = """
    a about above after again all also am an and any are as at be because been before being below between both but
    by can could d did do does doing don down during each few for from further get got had has have having he her here
    hers him his how i if in into is it its just ll m may me might more most must my no nor not now of off on once one
    only or other our out over own re s same she should so some such t than that the their them then there these they
    this those through to too under until up us ve very was we were what when where which while who whom why will with
    would you your yours"""
# Korean nouns and stems that mean little by themselves
KOREAN = "것 거 수 때 등 더 이 그 저 나 너 우리 하 되 있 없 않 같 보 주 위 데 줄 중 및 또 다 잘 좀"
STOP_WORDS = frozenset(ENGLISH.split()) | frozenset(KOREAN.split())


def terms_of(
    groups: Sequence[Sequence[str]], top: int, max_words: int = 1, progress: bool | None = False
) -> list[Terms]:
    """The best terms of each group of texts to show to people, with their weights: Korean texts by their nouns.

    >>> terms_of([["a red apple", "an apple"], ["blue whales"]], top=1)
    [(('apple', ...),), (('blue', ...),)]
    """
    if top == 0:  # asked for while groups still change
        return [() for _ in groups]
    names: dict[str, str] = {}
    numbered = iter(_numbered(list(chain.from_iterable(groups)), names, progress))
    words = {number: noun for noun, number in names.items()}
    found = class_terms([[next(numbered) for _ in group] for group in groups], POOL_FACTOR * top, max_words=max_words)
    shown = [
        [(" ".join(words.get(word, word) for word in term.split(" ")), weight) for term, weight in row] for row in found
    ]
    # one letter or a bare number names nothing
    return [
        tuple((term, weight) for term, weight in row if len(term) > 1 and not term.isdigit())[:top] for row in shown
    ]


def _numbered(texts: Sequence[str], names: dict[str, str], progress: bool | None) -> list[str]:
    """Texts with Korean nouns as numbers: `class_terms` would cut them once more, without kiwipiepy into syllables."""
    texts = composed(texts)
    is_korean = [has_hangul(text) for text in texts]
    cut = iter(nouns([text for text, is_one in zip(texts, is_korean, strict=True) if is_one], progress))
    found = []
    for text, is_one in zip(texts, is_korean, strict=True):
        if is_one:
            kept = [noun for noun, _ in next(cut) if noun not in STOP_WORDS and len(noun) > 1]
            text = " ".join(names.setdefault(noun, f"{NOUN}{len(names)}") for noun in kept)
        found.append(text)
    return found


def class_terms(
    groups: Sequence[Sequence[str]],
    top: int = 10,
    stop_words: Collection[str] | None = None,
    max_words: int = 1,
    min_count: int = 1,
) -> list[list[tuple[str, float]]]:
    """For each group of texts the terms that are frequent in it and rare elsewhere, the best first, with their weights.

    The weight is the term's share of its group's terms times log(1 + A / f), where A is the mean number of terms of a
    group and f how often the term occurs in all. `max_words` above 1 takes phrases of so many words too; `min_count`
    leaves out what is rarer in all groups together; `stop_words=None` are ours. A group of only stop words has none.

    >>> class_terms([["a red apple", "the apple"], ["a blue whale"]], top=1)
    [[('apple', 0.54...)], [('blue', 0.62...)]]
    """
    if top < 1 or max_words < 1 or min_count < 1:
        raise InputError(f"top, max_words and min_count must be at least 1, not {top}, {max_words} and {min_count}.")
    ignored = STOP_WORDS if stop_words is None else frozenset(stop_words)
    counts = _counts(groups, ignored, max_words)
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    mean = sum(total.values()) / max(len(groups), 1)
    rarity = {term: math.log1p(mean / count) for term, count in total.items() if count >= min_count}
    found = []
    for each in counts:
        size = sum(each.values())
        weights = [(term, count / size * rarity[term]) for term, count in each.items() if term in rarity]
        found.append(sorted(weights, key=lambda pair: (-pair[1], pair[0]))[:top])
    return found


def _counts(groups: Sequence[Sequence[str]], ignored: frozenset[str], max_words: int) -> list[Counter[str]]:
    """Count each term in each group. A word is cut into its terms once, however often it occurs."""
    words = [[WORD.findall(unicodedata.normalize("NFKC", text).lower()) for text in group] for group in groups]
    distinct = list(dict.fromkeys(chain.from_iterable(chain.from_iterable(words))))
    pieces = {
        word: [piece for piece in cut.split(" ") if piece and piece not in ignored]
        for word, cut in zip(distinct, terms(distinct), strict=True)
    }
    counts = []
    for group in words:
        count: Counter[str] = Counter()
        for text in group:
            kept = list(chain.from_iterable(pieces[word] for word in text))
            count.update(kept)
            for length in range(2, max_words + 1):
                count.update(" ".join(kept[start : start + length]) for start in range(len(kept) - length + 1))
        counts.append(count)
    return counts
