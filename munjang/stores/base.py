"""The seam between an index and an engine: rows in, rows out, nearest vectors found.

N rows, Q queries, D dimensions. To add an engine: a file or folder here and a line in STORES (stores/__init__.py);
tests/contracts/stores holds it to everything below.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from munjang.errors import InputError, MunjangError
from munjang.stores.filters import Filter
from munjang.types import Array, Floats, Value
from munjang.vectors.sparse import SparseVectors

if TYPE_CHECKING:
    from munjang.stores.arrow import Columns

KINDS = ("text", "int", "float", "bool")  # of metadata fields


class StoreError(MunjangError):
    """The engine rejected the operation or is unavailable; acknowledged writes are safe."""


class NoSuchStore(StoreError, InputError):
    """There is no store of that name at that location."""


@dataclass(frozen=True)
class Schema:
    """Describes what a store holds. It is recorded when the store is created; only fields are added later."""

    dimension: int
    metric: str = "cosine"  # cosine, dot, euclidean: scores are those of vectors/similarity.py, higher is closer
    vectors: str = "float32"  # as they are stored: float32, float16, int8, binary
    fields: Mapping[str, str] = field(default_factory=dict)  # metadata: name -> kind of KINDS
    facts: Mapping[str, Any] = field(default_factory=dict)  # plain JSON that the index wants to find again
    sparse_dimension: int = 0  # of sparse vectors beside them; 0: there are none
    token_dimension: int = 0  # of token vectors for late interaction; 0: there are none
    tokens: str = "int8"  # as token vectors are stored: int8, float16, float32


@dataclass(frozen=True)
class Abilities:
    """States what an engine can do; `open` refuses anything else."""

    vectors: tuple[str, ...]  # of float32, float16, int8, binary
    metrics: tuple[str, ...]
    max_dimension: int | None = None
    max_text_bytes: int | None = None
    max_id_bytes: int | None = None
    max_metadata_bytes: int | None = None  # of a row, as JSON
    has_terms: bool = False  # BM25 over words
    has_sparse: bool = False  # dot products of sparse vectors
    has_tokens: bool = False  # MaxSim of token vectors


@dataclass(frozen=True)
class Rows:
    """Passages: `document_ids` says what each belongs to, `starts` and `ends` where it stands in that text."""

    ids: Sequence[str]
    document_ids: Sequence[str]
    texts: Sequence[str]
    starts: Sequence[int]
    ends: Sequence[int]
    metadata: Sequence[Mapping[str, Value]]
    vectors: Array | None = None  # [N, D] as the schema says: float32, float16, int8, or packed bits (uint8, D / 8)
    full_vectors: Floats | None = None  # [N, D] float32, beside int8 and binary ones, for rescoring
    terms: Sequence[str] | None = None  # the words of each text, joined with spaces, for BM25
    sparse: SparseVectors | None = None  # a row each
    tokens: Sequence[Array] | None = None  # [T, D] of each text, T its own number of tokens

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Found:
    """Rows for one query, best first. Scores are exact: those of the full vectors."""

    ids: list[str]
    scores: list[float]


class Store(Protocol):
    """One collection of rows in an engine. All methods may be called from several threads."""

    @property
    def schema(self) -> Schema:
        """Return the schema as of the last call."""

    @property
    def abilities(self) -> Abilities:
        """Return what its engine can do."""

    def extend(self, fields: Mapping[str, str]) -> None:
        """Add metadata fields; existing rows have none of them."""

    def add(self, rows: Rows) -> None:
        """Add rows, all or none; an id that exists is an InputError that names it."""

    def upsert(self, rows: Rows) -> None:
        """Add rows, all or none; a row whose id exists replaces that row."""

    def load(self, columns: "Columns", is_new: bool) -> None:
        """Upsert whole columns, all or none; `is_new`: the caller knows that none of the ids exists."""

    def delete(self, document_ids: Sequence[str]) -> int:
        """Remove every row of these documents and return how many rows there were."""

    def remove(self, ids: Sequence[str]) -> int:
        """Remove rows by their own ids and return how many there were."""

    def get(self, ids: Sequence[str], with_vectors: bool = False) -> Rows:
        """Return rows by id, in this order; unknown ids are left out."""

    def passages(self, document_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the row ids of each document in the order of their starts; unknown documents have none."""

    def search(self, queries_QD: Floats, k: int, where: Filter | None = None) -> list[Found]:
        """Find the k nearest rows of each query, fewer only where fewer fit `where`. Equal scores go by id."""

    def search_terms(self, queries: Sequence[str], k: int, where: Filter | None = None) -> list[Found]:
        """Find the k best rows by BM25 over words, for stores with `has_terms`."""

    def search_sparse(self, queries: SparseVectors, k: int, where: Filter | None = None) -> list[Found]:
        """Find the k best rows by dot products above 0, for stores with `has_sparse`. Equal scores go by id."""

    def search_tokens(self, queries: Sequence[Array], k: int, where: Filter | None = None) -> list[Found]:
        """Find the k best rows by MaxSim, for stores with `has_tokens`. Equal scores go by id."""

    def count(self, where: Filter | None = None) -> int:
        """Count rows: all, or those that fit."""

    def scan(self, batch_rows: int = 4096, with_vectors: bool = True) -> Iterator[Rows]:
        """Read all rows, batch by batch, as of the moment at which reading began."""

    def compact(self) -> dict[str, Any]:
        """Tidy up, build what makes searching fast if it pays, and return what was done, for people."""

    def info(self) -> dict[str, Any]:
        """Describe engine, rows, size and indexes, for people."""

    def put_facts(self, facts: Mapping[str, Any]) -> None:
        """Replace the facts of the schema, in one step."""

    def close(self) -> None:
        """Close files and connections."""
