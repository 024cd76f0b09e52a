"""POST /files: files as they are into an index."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from munjang.bi_encoder import BiEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from munjang.index import Index
from munjang.server.embedder import Embedder
from munjang.server.limits import AccessRules
from munjang.server.service import Service
from munjang.server.tenants import Key, Keyring, add_key
from munjang.server.views import ServedIndex
from tests.data.office import made
from tests.server.running import Running, running

KEY = "the-key"


@pytest.fixture
def server(model: BiEncoder, tmp_path: Path) -> Iterator[Running]:
    service = Service([Embedder("tiny", model)], [], [ServedIndex("notes", Index.open("memory:", model))])
    with running(service, AccessRules(Keyring([KEY], tmp_path / "keys.json"), max_file_bytes=3_000_000)) as started:
        yield started


def put(
    server: Running, name: str, content: bytes, key: str = KEY, kind: str = "application/octet-stream"
) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}", "content-type": kind}
    return server.client.post("/files", params={"name": name}, content=content, headers=headers)


def get(server: Running, id: str, key: str = KEY) -> httpx.Response:
    return server.client.get("/documents", params={"id": id}, headers={"authorization": f"Bearer {key}"})


def test_files_come_with_pages_and_headings(server: Running, tmp_path: Path) -> None:
    sections = [("Whales", "The whale lives in the sea."), ("Courts", "A court decides about the law.")]
    for suffix in (".pdf", ".hwpx", ".eml"):
        made.MAKERS[suffix](tmp_path / f"a{suffix}", "Report", sections)
        answer = put(server, f"보고서{suffix}", (tmp_path / f"a{suffix}").read_bytes())
        assert answer.status_code == 200, answer.text
        assert answer.json()["id"] == f"보고서{suffix}"
        found = get(server, f"보고서{suffix}").json()
        assert found["metadata"]["source"] == f"보고서{suffix}"
        assert "whale" in found["passages"][0]["text"]
    before = server.client.get("/documents", headers={"authorization": f"Bearer {KEY}"}).json()["passages"]
    assert put(server, "C:\\folder\\note.txt", "바다 이야기".encode()).json()["id"] == "note.txt"
    assert put(server, "../note.txt", b"a shorter one").json() == {"id": "note.txt", "characters": 13, "parts": 0}
    assert get(server, "note.txt").json()["passages"][0]["text"] == "a shorter one"
    assert server.client.get("/documents", headers={"authorization": f"Bearer {KEY}"}).json()["passages"] == before + 1


@pytest.mark.parametrize(
    ("name", "content", "status", "told"),
    [
        ("a.pdf", b"%PDF-1.4 nothing", 422, "a.pdf can't be read"),
        ("a.hwpx", b"PK\x03\x04", 422, "a.hwpx can't be read"),
        ("a.docx", b"", 422, "a.docx can't be read"),
        ("a.txt", b"\xff\xfe\x00", 422, "not UTF-8"),
        ("a.txt", b"  \n", 422, "it holds no text"),
        ("a.exe", b"x", 422, "Can't read a file named 'a.exe'; choose from .txt"),
        ("", b"x", 422, "name"),
        ("a.txt", b"x" * 3_000_001, 413, "3000000 bytes; split it"),
    ],
)
def test_what_can_be_wrong(name: str, content: bytes, status: int, told: str, server: Running) -> None:
    answer = put(server, name, content)
    assert (answer.status_code, told in answer.json()["error"]) == (status, True), answer.text
    assert "/tmp" not in answer.text


def test_a_page_elsewhere_can_not_send_a_file(server: Running) -> None:
    """Browsers send text/plain and forms to any server without asking it; this type they don't."""
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", ""):
        assert put(server, "a.txt", b"x", kind=kind).status_code == 422
    assert get(server, "a.txt").status_code == 404


def test_files_of_two_tenants_have_one_name(server: Running, tmp_path: Path) -> None:
    keys = [
        add_key(tmp_path / "keys.json", Key(name, "", ("read", "write"), (), {"tenant": name})) for name in ("a", "b")
    ]
    server.client.get("/keys", headers={"authorization": f"Bearer {KEY}"})  # reads the file at once
    assert [put(server, "n.txt", b"text", key).json()["id"] for key in keys] == ["a/n.txt", "b/n.txt"]
    assert get(server, "a/n.txt", keys[0]).json()["metadata"]["tenant"] == "a"
    assert get(server, "a/n.txt", keys[1]).status_code == 404
