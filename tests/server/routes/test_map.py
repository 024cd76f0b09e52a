"""The map of the index over HTTP."""

from collections.abc import Iterator

import pytest

from munjang.bi_encoder import BiEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.index import Index
from munjang.server.embedder import Embedder
from munjang.server.service import Service
from munjang.server.views import ServedIndex
from tests.server.running import Running, running
from tests.texts import ENGLISH

TEXTS = [*dict.fromkeys(ENGLISH)][:20]


@pytest.fixture(scope="module")
def indexed(model: BiEncoder) -> Iterator[Running]:
    index = Index.open("memory:", model)
    index.add(TEXTS, [f"d{n}" for n in range(len(TEXTS))])
    with running(Service([Embedder("tiny", model)], [], [ServedIndex("default", index)])) as started:
        yield started


def test_the_map_is_drawn_again_only_when_the_index_changes(indexed: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    from munjang.server import landscape

    num_drawn, draw = 0, landscape.draw

    def counted(found: landscape.Sample) -> landscape.Landscape:
        nonlocal num_drawn
        num_drawn += 1
        return draw(found)

    monkeypatch.setattr(landscape, "draw", counted)
    client = indexed.client
    first = client.get("/map").json()
    assert {point["document_id"] for point in first["points"]} == {f"d{n}" for n in range(len(TEXTS))}
    assert {point["cluster"] for point in first["points"]} == set(range(len(first["clusters"])))
    assert client.get("/map").json() == first
    assert num_drawn == 1
    client.post("/documents", json={"documents": [{"id": "new", "text": "a new one", "metadata": {"year": 1}}]})
    second = client.get("/map").json()
    assert (num_drawn, second["num_passages"]) == (2, len(TEXTS) + 1)
    assert {point["document_id"]: point["metadata"] for point in second["points"]}["new"] == {"year": 1}
    client.post("/documents", json={"documents": [{"id": "new", "text": "changed, though as many as before"}]})
    assert "changed, though as many as before" in client.get("/map").text
    client.delete("/documents/new")
    assert client.get("/map").json() == first


def test_no_index_no_map(server: Running) -> None:
    assert server.client.get("/map").status_code == 404
