"""Uploads, several indexes, keys, usage and explanations on the page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from munjang.index import Index
from munjang.server.limits import AccessRules
from munjang.server.tenants import Key, Keyring, add_key
from munjang.server.views import ServedIndex
from tests.data.office import made
from tests.server.page.visiting import PHONE, Visit, first_becomes, searched, service, status_becomes, width_beyond
from tests.server.running import Running, running


@pytest.fixture
def two(model: BiEncoder, scorer: CrossEncoder, browser: Any) -> Iterator[Running]:
    """Two indexes, no keys."""
    made_here = service(model, scorer)
    wiki = Index.open("memory:", model)
    wiki.add(["A page about volcanoes"], ["v"])
    made_here.indexes = [*made_here.indexes, ServedIndex("wiki", wiki)]
    with running(made_here) as started:
        yield started


def test_files_are_uploaded(two: Running, visit: Visit, tmp_path: Path) -> None:
    page = visit(two.url)
    page.wait_for_selector("#fields .chip")
    made.MAKERS[".hwpx"](tmp_path / "고래.hwpx", "고래", [("바다", "고래는 바다에 삽니다.")])
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "note.txt").write_text("A lighthouse by the harbour")
    page.click("#add")
    page.set_input_files("#new-files", [tmp_path / name for name in ("고래.hwpx", "broken.pdf", "note.txt")])
    status_becomes(page, "2 documents added.")
    states = page.locator("#file-states li").all_text_contents()
    assert [state.split(" ")[0] for state in states] == ["고래.hwpx", "broken.pdf", "note.txt"]
    assert "can't be read" in states[1]
    page.keyboard.press("Escape")
    searched(page, "A lighthouse by the harbour")
    first_becomes(page, "A lighthouse by the harbour")
    page.evaluate(
        """() => { const files = new DataTransfer(); files.items.add(new File(["A dropped text"], "dropped.md"));
        document.dispatchEvent(new DragEvent("drop", {dataTransfer: files, cancelable: true})); }"""
    )
    page.wait_for_selector("#file-states li:has-text('dropped.md added')")
    assert two.client.get("/documents", params={"id": "dropped.md"}).status_code == 200


def test_another_index(two: Running, visit: Visit) -> None:
    page = visit(two.url)
    page.wait_for_selector("#index:visible")
    assert page.locator("#index option").all_text_contents() == ["default", "wiki"]
    page.select_option("#index", "wiki")
    page.wait_for_function("() => document.getElementById('served').textContent.includes('1 passage')")
    searched(page, "volcanoes")
    first_becomes(page, "A page about volcanoes")
    page.locator("#retrieved-hits .open").first.click()
    page.wait_for_selector("#document[open]")
    assert page.text_content("#document .whole") == "A page about volcanoes"
    page.keyboard.press("Escape")
    page.reload()
    page.wait_for_function("() => document.getElementById('index').value === 'wiki'")
    page.click("#tab-map")
    page.wait_for_selector("#picture circle")
    assert page.locator("#picture circle").count() == 1


def test_why_a_hit_is_there(two: Running, visit: Visit) -> None:
    page = visit(two.url)
    searched(page, "The sea and the mountain")
    page.wait_for_selector("#reranked-hits .open")
    page.locator("#reranked-hits .open").first.click()
    page.click("#document .why summary")
    names = page.locator("#document .why tbody td:first-child").all_text_contents()
    assert set(names[:2]) == {"words", "meaning"}
    assert names[2::2] == ["Retrieval, all ways", "What orders the hits"]
    values = page.locator("#document .why tbody td:last-child").all_text_contents()
    assert all(float(value) is not None for value in values)


def test_keys_on_the_page(
    model: BiEncoder, browser: Any, visit: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.json"
    admin = add_key(path, Key("admin", scopes=("read", "write", "admin")))
    with running(service(model), AccessRules(Keyring(path=path))) as own:
        page = visit(own.url, viewport=PHONE)
        page.fill("#key", admin)
        page.keyboard.press("Enter")
        page.wait_for_selector("#fields .chip", state="attached")
        page.click("#keys")
        page.wait_for_selector("#all-keys")
        assert "admin" in page.text_content("#access .described")
        page.fill("#key-name", "alice")
        page.fill("#key-only", "tenant=alice")
        page.click("#new-key button[type=submit]")
        page.wait_for_selector("#new-secret:visible")
        secret = page.text_content("#new-secret code")
        assert secret.startswith("mj_")
        assert "tenant = alice" in page.text_content("#all-keys tbody")
        assert width_beyond(page) == 0
        page.fill("#key-name", "alice")
        page.click("#new-key button[type=submit]")
        page.wait_for_selector("#key-wrong:visible")
        assert "already" in page.text_content("#key-wrong")
        page.click("text=Use another key")
        page.fill("#key", secret)
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.getElementById('served').textContent.includes(' 0 passages')")
        page.click("#keys")
        page.wait_for_selector("#access .described")
        assert page.locator("#all-keys").count() == 0
        own_use = page.text_content("#access .described")
        assert "alice" in own_use
        assert "requests" in own_use
