"""Two teachers as one: the second round of ko-en-small learns from all-mpnet-base-v2 and from the first round.

They err in different places: on STSb dev their cosines reach 88.1 and 89.3 (Spearman * 100) and 90.6 together.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from munjang import BiEncoder
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap
from munjang.index.rerank import standard
from munjang.types import Floats
from recipes.ko_en_small.data import everyday, file, joined, read_table, reported
from recipes.ko_en_small.silver import near

OWN = 0.7  # share of the first round's cosines, which spread half as far
RANKS = (1, 2, 3, 4, 6, 9, 13, 20)
SOFT = 0.3  # share of the teachers in the scores that people gave
JUDGED = 0.4  # share of the cross-encoder's scores
MAX_PAIRS = 160_000  # of neighbours: five rows each


@dataclass(frozen=True)
class Both:
    """Vectors of two encoders side by side: their cosine is the weighted mean of both cosines."""

    teacher: BiEncoder
    own: BiEncoder

    @property
    def device(self) -> Any:
        return self.own.device

    @property
    def dimension(self) -> int:
        return self.teacher.dimension + self.own.dimension

    @property
    def fingerprint(self) -> str:
        return f"{self.teacher.fingerprint} {self.own.fingerprint} {OWN}"

    def encode(self, texts: list[str], normalize: bool | None = None, progress: bool | None = None) -> Floats:
        """Always of length one."""
        parts = [
            encoder.encode(texts, normalize=True, progress=progress) * np.float32(share**0.5)
            for encoder, share in ((self.teacher, 1 - OWN), (self.own, OWN))
        ]
        return np.concatenate(parts, axis=1)


def rescored(both: Both, silver: list[Examples], english: list[Examples]) -> list[Examples]:
    """Silver pairs scored by three; `english` holds the English side of each pair."""
    return [
        replace(each, scores=standard(np.asarray(each.scores)) * JUDGED + standard(cosines(both, side)) * (1 - JUDGED))
        for each, side in zip(silver, english, strict=True)
    ]


def softened(both: Both, gold: Examples, data: Path) -> Examples:
    """STSb in either language: what people have said, and what both teachers say of the English. People err too."""
    source = file(data, "sts/stsb-en-ko-train")
    table = read_table(source, ("sentence1_en", "sentence2_en", "sentence1_ko", "sentence2_ko"))
    english_of = {
        korean: english
        for side in ("sentence1", "sentence2")
        for korean, english in zip(table[f"{side}_ko"], table[f"{side}_en"], strict=True)
    }
    english = Examples("English", tuple([english_of.get(text, text) for text in column] for column in gold.texts))
    return replace(
        gold, scores=standard(np.asarray(gold.scores)) * (1 - SOFT) + standard(cosines(both, english)) * SOFT
    )


def neighbours(both: Both, data: Path) -> Examples:
    """Everyday sentences that have a translation, with more of their neighbours than the cross-encoder has read."""
    pairs = near(both, *everyday(data), seed=6, ranks=RANKS)
    assert pairs.korean is not None
    kept = np.sort(np.random.default_rng(6).permutation(len(pairs.first))[:MAX_PAIRS])
    first, second = pairs.first[kept].tolist(), pairs.second[kept].tolist()
    columns = [
        ([one[row] for row in first], [other[row] for row in second])
        for one in (pairs.english, pairs.korean)
        for other in (pairs.english, pairs.korean)
    ]
    scores = cosines(both, Examples("English", columns[0]))
    parts = [Examples("neighbours", each, scores=scores) for each in (columns[3], *columns)]  # Korean twice
    return drop_overlap(joined("neighbours", parts), reported(data))


def cosines(encoder: Both | BiEncoder, pairs: Examples) -> np.ndarray:
    """Return vectors of the two texts of each row, every text encoded once."""
    place_of = {text: place for place, text in enumerate(dict.fromkeys(pairs.texts[0] + pairs.texts[1]))}
    vectors = encoder.encode(list(place_of), normalize=True, progress=True)
    first, second = ([place_of[text] for text in column] for column in pairs.texts)
    found: np.ndarray = np.einsum("nd,nd->n", vectors[first], vectors[second]).astype(np.float64)
    return found
