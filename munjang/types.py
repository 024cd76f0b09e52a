"""Records that several folders share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from munjang.display import short, table
from munjang.errors import InputError

Array = NDArray[np.generic]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Bools = NDArray[np.bool_]
Scalar: TypeAlias = str | int | float | bool
Value: TypeAlias = Scalar | None  # of a metadata field; None where a row does not have it


@dataclass(frozen=True)
class TokenIds:
    """Token ids with special tokens, one sequence per text, which `encode` takes instead of strings.

    >>> TokenIds([[101, 7592, 102], [101, 102]]).lengths.tolist()
    [3, 2]
    """

    sequences: Sequence[Sequence[int] | Array]

    def __post_init__(self) -> None:
        for row, sequence in enumerate(self.sequences):
            ids = np.asarray(sequence)
            if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
                raise InputError(
                    f"Token ids of text {row} must be a flat sequence of whole numbers, not {sequence!r:.80}"
                )
            if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < 2**31:  # they would wrap around
                raise InputError(
                    f"Token ids of text {row} lie between {ids.min()} and {ids.max()}: no model has those."
                )

    def __len__(self) -> int:
        return len(self.sequences)

    @property
    def lengths(self) -> Ints:
        """The number of tokens of each text."""
        return np.array([len(sequence) for sequence in self.sequences], np.int64)

    @property
    def flat(self) -> Ids:
        """The ids of all texts in one row."""
        parts = [np.asarray(sequence, np.int32) for sequence in self.sequences]
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)


@dataclass(frozen=True)
class Hit:
    """A result of a ranking or of a search. Higher scores are better.

    `CrossEncoder.rank` fills the first four fields, `Index.search` all but `scale`.

    >>> Hit(0, "The speed of light is 300,000 km a second.", 0.98, "sigmoid")
    Hit(score=0.9800, index=0, text='The speed of light is 300,000 km a second.')
    """

    index: int  # place in the list that was ranked, from 0; of a search: among its candidates
    text: str
    score: float  # orders the hits: the retrieval's, a re-ranker's, or both combined
    scale: str = ""  # of a ranking's scores: "sigmoid" (0 to 1), "logit" (any number), or the activation's name
    id: str = ""
    document_id: str = ""
    start: int = 0  # where the passage stands in its document, in characters
    end: int = 0
    metadata: Mapping[str, Value] = field(default_factory=dict)
    retrieval_score: float | None = None
    rerank_score: float | None = None
    relevance: float | None = None  # probability that the hit answers the query, where the index is calibrated
    ranks: Mapping[str, int] = field(default_factory=dict)  # by each way of searching that found it, from 1
    scores: Mapping[str, float] = field(default_factory=dict)  # of each way: BM25, the model's similarity
    highlights: tuple[tuple[int, int], ...] = ()  # where the words of the query stand in the text

    @property
    def retrieval_rank(self) -> int:
        """The rank before re-ranking, from 1."""
        return self.index + 1

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of a search where it has an id, else those of a ranking, for JSON.

        >>> Hit(0, "a text", 0.98, "sigmoid").as_dict()
        {'index': 0, 'text': 'a text', 'score': 0.98, 'scale': 'sigmoid'}
        """
        names = SEARCH_FIELDS if self.id else RANKING_FIELDS
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        name = f"id={self.id!r}, " if self.id else f"index={self.index}, "
        return f"Hit(score={self.score:.4f}, {name}text={short(self.text, 60)!r})"

    def _repr_html_(self) -> str:
        return Hits([self])._repr_html_()


class Hits(list[Hit]):
    """Hits of one query, best first: a list that a notebook shows as a table.

    >>> Hits([Hit(0, "The speed of light is 300,000 km a second.", 0.98)])
    [Hit(score=0.9800, index=0, text='The speed of light is 300,000 km a second.')]
    """

    def _repr_html_(self) -> str:
        rows = [[hit.score, hit.text, hit.document_id, str(hit.retrieval_rank)] for hit in self]
        return table(f"{len(self)} hits", ["score", "text", "document", "rank before"], rows)


RANKING_FIELDS = ("index", "text", "score", "scale")
SEARCH_FIELDS = (
    *("id", "document_id", "text", "start", "end", "metadata"),
    *("score", "retrieval_score", "retrieval_rank", "rerank_score", "relevance", "ranks", "scores", "highlights"),
)
