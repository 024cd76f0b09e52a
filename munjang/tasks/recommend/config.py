"""Settings of recommendation: one frozen record, whose fields are flags of `munjang recommend` too."""

from dataclasses import dataclass
from typing import Literal

from munjang.errors import InputError, unknown
from munjang.options import option

CHOICES = {"pick": ("mmr", "determinantal"), "combine": ("mean", "nearest")}


@dataclass(frozen=True, kw_only=True)
class RecommendConfig:
    """Settings of recommendation.

    >>> RecommendConfig(k=5, diversity=0.5, half_life=3).pick
    'mmr'
    """

    k: int = option("items to recommend", 10, "-k")
    diversity: float = option("0: the nearest only; 1: as unlike each other as can be", 0.2)
    pick: Literal["mmr", "determinantal"] = option(
        "how they are made unlike each other: from the nearest pick so far, or from all picks together", "mmr"
    )
    combine: Literal["mean", "nearest"] = option(
        "an item should be near to what is liked on average, or near to any of it (several tastes)", "mean"
    )
    half_life: float | None = option("a like counts half after so many newer ones (default: all the same)", None)
    dislike_weight: float = option("how much being near to something disliked counts against an item", 0.5)
    candidates: int = option("nearest items to choose from", 100)

    def __post_init__(self) -> None:
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise unknown(name, getattr(self, name), allowed)
        if self.k < 1 or self.candidates < 1:
            raise InputError(f"k and candidates must be at least 1, not {self.k} and {self.candidates}.")
        if not 0 <= self.diversity <= 1:
            raise InputError(f"diversity must be between 0 and 1, not {self.diversity}.")
        if self.half_life is not None and not 0 < self.half_life < float("inf"):
            raise InputError(f"half_life is a number of likes, over 0, not {self.half_life}.")
        if not 0 <= self.dislike_weight < float("inf"):
            raise InputError(f"dislike_weight must be a number of at least 0, not {self.dislike_weight}.")
