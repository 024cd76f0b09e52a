from collections.abc import Iterator
from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.data.documents import Document
from munjang.index import Index
from munjang.index import ingest as ingesting
from munjang.index.ingest import ingest


@pytest.fixture
def index(tiny_bert: Path) -> Iterator[Index]:
    with Index.open("memory:", BiEncoder.load(tiny_bert, "cpu")) as made:
        yield made


def test_the_same_again_changes_nothing(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "BATCH_DOCUMENTS", 3)
    documents = [Document(f"text {n}", metadata={"n": n}) for n in range(8)]
    first = ingest(index, documents, progress=False)
    assert (first.num_added, first.num_known) == (8, 0)
    again = ingest(index, documents, progress=False)
    assert (again.num_added, again.num_known) == (0, 8)
    assert index.count() == 8
    assert str(again) == "0 documents added, 8 were there already"


def test_an_interrupted_run_goes_on(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingesting, "BATCH_DOCUMENTS", 3)
    documents = [Document(f"text {n}") for n in range(8)]

    def breaking() -> Iterator[Document]:
        yield from documents[:7]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(index, breaking(), progress=False)
    assert index.count() == 6  # two whole batches
    done = ingest(index, documents, progress=False)
    assert (done.num_added, done.num_known) == (2, 6)
    assert index.count() == 8


def test_an_id_replaces(index: Index) -> None:
    ingest(index, [Document("old text", "a"), Document("other", "b")], progress=False)
    ingest(index, [Document("new text", "a")], progress=False)
    assert index.count() == 2
    assert [hit.text for hit in index.get(["a#0"])] == ["new text"]


def test_a_field_that_is_null_everywhere_is_left_out(index: Index) -> None:
    """A client's null says that there is no value; it was refused as an unknown field."""
    index.add(["one", "two"], ids=["a", "b"], metadata=[{"year": None}, {"lang": "ko", "year": None}])
    assert index.store.schema.fields.keys() & {"year", "lang"} == {"lang"}
    index.upsert(["one"], ids=["a"], metadata=[{"year": 5, "lang": None}])
    assert index.count("year = 5") == 1
