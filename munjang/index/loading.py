"""Loading encoded vectors into an index in bulk: whole columns from Parquet to the engine.    N rows.

The vectors have to be those that the index would compute: the same model, its prompt for documents, its dimension.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from munjang.bi_encoder import DOCUMENT_PROMPTS, BiEncoder
from munjang.data.vectors import matrix_of
from munjang.errors import InputError
from munjang.index.index import Index
from munjang.index.schema import stored_vectors
from munjang.index.words import document_terms
from munjang.progress import Progress
from munjang.stores.arrow import Columns
from munjang.stores.base import Schema, Store
from munjang.stores.checks import check_columns
from munjang.text.inputs import pick_prompt
from munjang.types import Array

if TYPE_CHECKING:
    import pyarrow as pa

FULL_PRECISIONS = ("float32", "float16")


def check_source(
    schema: Schema, model: BiEncoder, fingerprint: str, settings: Mapping[str, Any], dimension: int
) -> None:
    """Refuse vectors that an index of this schema and model would not compute itself."""
    facts = schema.facts
    if fingerprint != facts["fingerprint"]:
        raise InputError(
            f"These vectors are of another model ({fingerprint[:12]}) than the index's, {facts['model']} "
            f"({facts['fingerprint'][:12]})."
        )
    if settings["precision"] not in FULL_PRECISIONS:
        raise InputError(
            f"These vectors are {settings['precision']}; an index scores with full ones. Encode with --precision "
            "float32 or float16: the index keeps them in the type that it was made with."
        )
    if dimension != schema.dimension:
        raise InputError(f"These vectors have {dimension} dimensions, the index {schema.dimension}.")
    wanted, used = _prompt_of({"role": "document"}, model), _prompt_of(settings, model)
    if used != wanted:
        raise InputError(
            f"These vectors were made with the prompt {used!r}, and the model reads documents with {wanted!r}: "
            "encode them with --document."
        )
    has_lengths = schema.metric != "cosine" or schema.vectors == "int8"  # 8 bits of a range
    if has_lengths and not _is_own_length(settings["normalize"], model):
        raise InputError(
            f"These vectors were made with normalize {settings['normalize']}, which is not the model's own way, and "
            "the index goes by their length: encode them without that option."
        )


def _prompt_of(settings: Mapping[str, Any], model: BiEncoder) -> str:
    """Return what these settings put before every text."""
    names = {"document": DOCUMENT_PROMPTS, "query": ("query",)}.get(settings["role"])
    if names is not None:
        return next((model.prompts[name] for name in names if model.prompts.get(name)), "")
    return pick_prompt(settings["prompt"], settings["prompt_name"], model.prompts, model.default_prompt_name)


def _is_own_length(normalize: bool | None, model: BiEncoder) -> bool:
    """Tell whether vectors have the length that the model gives them; a cut one has no unit length any more."""
    is_unit = model.network.is_unit
    return {None: True, True: is_unit and model.dimension == model.width, False: not is_unit}[normalize]


class Seen:
    """Ids of earlier tables as hashes, 8 bytes each; a collision costs a merge that was not needed."""

    def __init__(self) -> None:
        self.runs: list[Array] = []  # sorted, each shorter than the one before

    def add(self, ids: Sequence[str]) -> bool:
        """Remember ids and tell whether one of them was known before."""
        new = np.sort(np.fromiter(map(hash, ids), np.int64, len(ids)))
        was_known = any(_has_any(run, new) for run in self.runs)
        while self.runs and len(self.runs[-1]) <= len(new):
            new = np.sort(np.concatenate([self.runs.pop(), new]))
        self.runs.append(new)
        return was_known


def _has_any(run: Array, values: Array) -> bool:
    rows = np.minimum(np.searchsorted(run, values), len(run) - 1)
    return bool((run[rows] == values).any())


def load_tables(
    index: Index, tables: Iterable["pa.Table"], num_rows: int | None = None, progress: bool | None = None
) -> int:
    """Load tables (id, vector, maybe text) into an index, each all or none, and return the number of rows.

    A row whose id exists replaces that document with all its passages, so a load that was stopped can be repeated.
    Words to search by are taken from the texts where there are any.
    """
    seen = Seen() if index.count() == 0 else None
    num_loaded = 0
    with Progress(num_rows, "loading", progress) as bar:
        for table in tables:
            if table.num_rows:
                columns = columns_of(index, table)
                ids = columns.document_ids.to_pylist()
                if seen is not None and not seen.add(ids):
                    index.store.load(columns, is_new=True)
                else:
                    _replace(index.store, columns, ids)
            num_loaded += table.num_rows
            bar.advance(table.num_rows)
    return num_loaded


def _replace(store: Store, columns: Columns, ids: Sequence[str]) -> None:
    """Load rows, then remove other passages of their documents, so that no document is gone in between."""
    check_columns(columns, store.schema)  # before the store is asked for ids that it can't store
    before = {row_id for old in store.passages(ids).values() for row_id in old}
    store.load(columns, is_new=False)
    gone = before - set(columns.ids.to_pylist())
    if gone:
        store.remove(sorted(gone))


def columns_of(index: Index, table: "pa.Table") -> Columns:
    """Convert a table to the columns of the index's store."""
    import pyarrow as pa

    ids = _column(table, "id").cast(pa.string())
    texts = _column(table, "text") if "text" in table.schema.names else pa.repeat(pa.scalar(""), table.num_rows)
    full = matrix_of(table).astype(np.float32, copy=False)
    stored, beside = stored_vectors(full, index.store.schema)
    has_words = index.store.abilities.has_terms and "text" in table.schema.names
    return Columns(
        ids,
        texts,
        stored,
        beside,
        pa.array(document_terms(texts.to_pylist(), index.store.schema.facts), pa.string()) if has_words else None,
    )


def _column(table: "pa.Table", name: str) -> Any:
    import pyarrow as pa

    column = table.column(name).combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
