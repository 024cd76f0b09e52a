"""Documents of the index over HTTP."""

from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.index.documents import document_id
from tests.server.routes.searching import TEXTS
from tests.server.running import Running


def test_documents_come_and_go(searching: Running) -> None:
    client = searching.client
    before = client.get("/documents").json()
    assert before["passages"] == len(TEXTS)
    new = [{"text": f"a wholly new text {n}"} for n in range(40)]
    new[1] |= {"id": "mine/1", "metadata": {"year": 1999}}
    ids = client.post("/documents", json={"documents": new}).json()["ids"]
    assert len(set(ids)) == 40
    assert ids[1] == "mine/1"
    found = client.post("/search", json={"query": "a wholly new text 1", "k": 1, "where": "year = 1999"}).json()
    assert found["hits"][0]["document_id"] == "mine/1"
    shown = client.get("/documents/mine/1").json()
    assert client.get("/documents", params={"id": "mine/1"}).json() == shown
    assert client.get("/documents", params={"id": "mine/../mine/1"}).status_code == 404
    assert (shown["metadata"], shown["passages"][0]["text"]) == ({"year": 1999}, "a wholly new text 1")
    changed = {"documents": [{"id": "mine/1", "text": "changed"}]}
    assert client.post("/documents", json=changed).json() == {"ids": ["mine/1"]}
    assert client.get("/documents/mine/1").json()["passages"][0]["text"] == "changed"
    assert client.get("/documents").json()["passages"] == len(TEXTS) + 40
    assert client.delete("/documents/mine/1").json() == {"deleted": 1}
    assert client.delete("/documents/mine/1").status_code == 404
    assert client.request("DELETE", "/documents", json={"ids": ids}).json() == {"deleted": 39}
    assert client.get("/documents").json()["passages"] == len(TEXTS)


def test_equal_documents_without_an_id_are_one(searching: Running) -> None:
    """Every document of a request gets its own id for an answer, in order."""
    new = [{"text": "one"}, {"text": "one"}, {"text": "two", "id": "mine"}, {"text": "three"}]
    ids = searching.client.post("/documents", json={"documents": new}).json()["ids"]
    assert ids == [document_id("one", {}), document_id("one", {}), "mine", document_id("three", {})]
    assert searching.client.get("/documents").json()["passages"] == len(TEXTS) + 3
    again = [{"text": "one", "id": "mine"}, {"text": "two", "id": "mine"}]
    answer = searching.client.post("/documents", json={"documents": again})
    assert (answer.status_code, answer.json()["error"]) == (422, "The id 'mine' is given twice.")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"documents": []}, 422),
        ({"documents": [{"text": "a", "id": ""}]}, 422),
        ({"documents": [{"text": "a", "metadata": {"year": "text"}}]}, 422),
        ({"documents": [{"text": "a", "metadata": {"x": {}}}]}, 422),
        ({"documents": [{"text": "a"}] * 101}, 413),
    ],
)
def test_bad_input(body: dict[str, Any], status: int, searching: Running) -> None:
    answer = searching.client.post("/documents", json=body)
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error", "error_type"}
    assert "Traceback" not in answer.text
    assert searching.client.get("/documents").json()["passages"] == len(TEXTS)
