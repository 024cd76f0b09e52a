"""Whole columns into every engine: what is read back is what `upsert` of the same rows leaves."""

import numpy as np
import pytest

from munjang.errors import InputError
from munjang.stores.arrow import Columns, joined
from munjang.stores.base import Schema
from munjang.stores.memory.store import as_rows
from tests.contracts.stores.engines import WIDTH, Place

pa = pytest.importorskip("pyarrow")
IDS = ["plain", 'quo"ted', "back\\slash", "한글", "tab\there", "zero", "e" * 300]


def columns(start: int = 0, kept: str = "float32", terms: bool = True) -> Columns:
    full = np.random.default_rng(start).standard_normal((len(IDS), WIDTH)).astype(np.float32)
    full[IDS.index("zero")] = 0
    texts = [f"text {number} 문장 {start}" for number in range(len(IDS))]
    kinds = {
        "float32": full,
        "float16": full.astype(np.float16),
        "int8": (full * 40).clip(-127, 127).astype(np.int8),
        "binary": np.packbits(full > 0, axis=1),
    }
    words = pa.array([f"word{number}" for number in range(len(IDS))]) if terms else None
    beside = full if kept in ("int8", "binary") else None
    return Columns(pa.array(IDS), pa.array(texts), kinds[kept], beside, words)


@pytest.mark.parametrize("kept", ["float32", "float16", "int8", "binary"])
def test_loaded_rows_are_rows(place: Place, kept: str) -> None:
    schema = Schema(WIDTH, "cosine", kept, {"year": "int"})
    loaded, plain = place.open(schema, True, "loaded"), place.open(schema, True, "plain")
    for start, is_new in ((0, True), (1, False)):  # new rows, then others in their place
        given = columns(start, kept, terms=loaded.abilities.has_terms)
        loaded.load(given, is_new)
        plain.upsert(as_rows(given))
        assert loaded.count() == plain.count() == len(IDS)
        found, wanted = (
            loaded.get([f"{row_id}#0" for row_id in IDS], True),
            plain.get([f"{row_id}#0" for row_id in IDS], True),
        )
        for name in ("ids", "document_ids", "texts", "starts", "ends", "metadata", "terms"):
            assert list(getattr(found, name) or []) == list(getattr(wanted, name) or []), name
        assert found.document_ids == IDS
        assert np.array_equal(found.vectors, wanted.vectors)
        queries = np.random.default_rng(9).standard_normal((3, WIDTH)).astype(np.float32)
        assert loaded.search(queries, 5) == plain.search(queries, 5)
    if loaded.abilities.has_terms:
        assert loaded.search_terms(["word3"], 2)[0].ids == [f"{IDS[3]}#0"]


def test_what_does_not_fit_is_refused(place: Place) -> None:
    store = place.open(Schema(WIDTH))
    good = columns()
    with pytest.raises(InputError, match="given are float32"):
        store.load(Columns(good.document_ids, good.texts, np.zeros((len(IDS), 8), np.float32)), True)
    bad = good.vectors.copy()
    bad[2, 3] = np.nan
    with pytest.raises(InputError, match=r"The vector of 'back\\\\slash' holds NaN"):
        store.load(Columns(good.document_ids, good.texts, bad), True)
    with pytest.raises(InputError, match="twice"):
        store.load(Columns(pa.array(["a"] * len(IDS)), good.texts, good.vectors), True)
    with pytest.raises(InputError, match="NUL character"):
        store.load(Columns(good.document_ids, pa.array(["a\0b"] * len(IDS)), good.vectors), True)
    assert store.count() == 0


def test_joined_row_by_row() -> None:
    assert joined(pa.array(["a", "bc"]), "#0").to_pylist() == ["a#0", "bc#0"]
    assert joined(b"\0", pa.array([b"a", b"bc"])).to_pylist() == [b"\0a", b"\0bc"]
