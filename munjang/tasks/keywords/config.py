"""Settings of keyword extraction: one frozen record, whose fields are the flags of `munjang keywords` too."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from munjang.errors import InputError, unknown
from munjang.options import option

CUTS = ("auto", "words", "nouns")  # auto: nouns where a text has Hangul
PICKS = ("nearest", "mmr", "max_sum")


@dataclass(frozen=True, kw_only=True)
class KeywordConfig:
    """Settings of keyword extraction. Defaults are KeyBERT's.

    Raises InputError for a setting out of its range.

    >>> KeywordConfig(top=3, pick="mmr", diversity=0.3).ngrams
    (1, 1)
    """

    top: int = option("keywords of each text", 5)
    ngrams: tuple[int, int] = option("words of a keyword: fewest and most", (1, 1))
    cut: Literal["auto", "words", "nouns"] = option(
        "candidates: words, Korean nouns, or (auto) nouns where a text has Hangul", "auto"
    )
    stop_words: str | Collection[str] = option("words that candidates leave out: english or none", "english")
    min_texts: int = option("leave out candidates that fewer texts have", 1)
    pick: Literal["nearest", "mmr", "max_sum"] = option(
        "the nearest; or near and unlike each other: by maximal marginal relevance, or max-sum distance", "nearest"
    )
    diversity: float = option("of mmr: 0 is the nearest, 1 the most unlike", 0.5)
    num_candidates: int = option("of max_sum: choose among so many of the nearest", 20)

    def __post_init__(self) -> None:
        for name in ("top", "min_texts", "num_candidates"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}.")
        check_ngrams(self.ngrams)
        if self.cut not in CUTS:
            raise unknown("way to cut texts", self.cut, CUTS)
        if self.pick not in PICKS:
            raise unknown("way to pick keywords", self.pick, PICKS)
        if not 0 <= self.diversity <= 1:
            raise InputError(f"diversity must be between 0 and 1, not {self.diversity}.")
        if self.pick == "max_sum" and self.num_candidates < self.top:
            raise InputError(f"num_candidates ({self.num_candidates}) must be at least top ({self.top}).")


def check_ngrams(ngrams: tuple[int, int]) -> None:
    """Refuse lengths that no phrase can have."""
    is_pair = isinstance(ngrams, Sequence) and len(ngrams) == 2 and all(isinstance(each, int) for each in ngrams)
    if not is_pair or not 1 <= ngrams[0] <= ngrams[1]:
        raise InputError(f"ngrams must be (fewest, most) words with 1 <= fewest <= most, not {ngrams}.")
