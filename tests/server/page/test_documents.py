"""Documents on the page: added, shown as they are whatever is in them, deleted."""

import pytest

from munjang.bi_encoder import BiEncoder
from tests.server.page.visiting import (
    PHONE,
    TEXTS,
    Visit,
    first_becomes,
    searched,
    service,
    status_becomes,
    width_beyond,
)
from tests.server.running import Running, running

HOSTILE = {
    "markup": '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script><b>bold</b>',
    "long": "x" * 5000,
    "reversed": "\u202eabc \u05e9\u05dc\u05d5\u05dd\u202c \u0645\u0631\u062d\u0628\u0627 \x07 \u200b",
}
pytestmark = pytest.mark.filterwarnings("ignore::munjang.errors.TruncationWarning")  # the server leaves it to clients


def test_add_and_delete(site: Running, visit: Visit) -> None:
    page = visit(site.url)
    page.wait_for_selector("#fields .chip")
    page.click("#add")
    page.click("#adding button[type=submit]")
    assert page.text_content("#new-problem") == "Write a text first."
    page.fill("#new-text", "A whale in the library\n\nA second line")
    page.check("#new-lines")
    values = page.locator("#adding .value")
    values.nth(1).fill("not a year")
    page.click("#adding button[type=submit]")
    page.wait_for_selector("#new-problem:visible")
    values.nth(1).fill("1999")
    page.click("text=Another field")
    page.locator("#adding .name").last.fill("shelf")
    values.last.fill("B 7")
    page.click("#adding button[type=submit]")
    status_becomes(page, "2 documents added.")
    searched(page, "A whale in the library")
    first = page.locator("#retrieved-hits .hit").first
    assert first.locator(".chip").all_text_contents() == ["1999", "B 7"]
    assert "shelf" in page.text_content("#fields")
    page.locator("#retrieved-hits .open").first.click()
    page.click("#document .danger")
    page.click("text=Yes, delete")
    status_becomes(page, "Deleted.")
    page.fill("#query", "A second line")
    first_becomes(page, "A second line")
    assert site.client.get("/documents").json()["passages"] == len(TEXTS) + 1


@pytest.mark.parametrize("odd", ["x/../b", ".."])
def test_the_document_that_is_shown_is_the_one_deleted(odd: str, model: BiEncoder, visit: Visit) -> None:
    """A browser makes `documents/x/../b` another document's address."""
    with running(service(model)) as own:
        documents = [{"id": "b", "text": "a whale"}, {"id": odd, "text": "a library"}]
        own.client.post("/documents", json={"documents": documents})
        page = visit(f"{own.url}/#search?q=a%20library")
        first_becomes(page, "a library")
        page.locator("#retrieved-hits .open").first.click()
        page.wait_for_selector("#document[open]")
        assert page.locator("#document dd").first.text_content() == odd
        assert page.text_content("#document .whole") == "a library"
        page.click("#document .danger")
        page.click("text=Yes, delete")
        status_becomes(page, "Deleted.")
        left = [own.client.get("/documents", params={"id": each["id"]}).status_code for each in documents]
        assert left == [200, 404]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_text(name: str, site: Running, visit: Visit) -> None:
    text = HOSTILE[name]
    document = {"id": f"<i>{name}</i>/'\"", "text": text, "metadata": {"note": text[:200]}}
    site.client.post("/documents", json={"documents": [document]})
    page = visit(site.url, viewport=PHONE)
    page.wait_for_selector("#fields .chip")
    page.fill("#query", text[:1000])
    page.wait_for_selector(f"#retrieved-hits .hit[data-document^='<i>{name}']", state="attached")
    page.click("#show-retrieved")
    shown = page.locator(f"#retrieved-hits .hit[data-document^='<i>{name}']")
    assert text.startswith(shown.locator(".text").text_content()[:4000])
    assert shown.locator("img, script, b").count() == 0
    assert width_beyond(page) == 0
    shown.locator(".open").click()
    page.wait_for_selector("#document[open]")
    assert page.locator("#document dd").first.text_content() == document["id"]
    assert page.locator("#document").evaluate("sheet => sheet.scrollWidth - sheet.clientWidth") <= 0
    page.keyboard.press("Escape")
    page.click("#tab-map")
    page.wait_for_selector("#picture circle")
    assert width_beyond(page) == 0
    assert page.evaluate("window.hacked") is None


def test_values_keep_their_digits(site: Running, visit: Visit) -> None:
    page = visit(site.url)
    call = "async given => { const { valueOf } = await import('/page/adding.js'); return given.map(([text, kind]) => "
    numbers = {"7": 7, " -2 ": -2, "0": 0, "0.25": 0.25, "9007199254740991": 2**53 - 1, "True": True}
    texts = ["01012345678", "9007199254740993", "1.50", "+7", "-0", "1e3", "Infinity", "NaN"]
    found = page.evaluate(f"{call} valueOf(text, kind)) }}", [[each, None] for each in (*numbers, *texts)])
    assert found == [*numbers.values(), *texts]
    kinds = {("1.50", "float"): 1.5, ("+.5", "float"): 0.5, ("7", "text"): "7", ("007", "int"): "007"}
    assert page.evaluate(f"{call} valueOf(text, kind)) }}", [[*each] for each in kinds]) == [*kinds.values()]
