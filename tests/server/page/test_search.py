"""Searching on the page: while typing, in both orders, and while the server is busy or away."""

from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from tests.server.page.visiting import (
    TEXTS,
    Visit,
    first_becomes,
    number_becomes,
    searched,
    service,
    status_becomes,
    texts,
)
from tests.server.running import Running, running

pytestmark = pytest.mark.filterwarnings("ignore::munjang.errors.TruncationWarning")  # the server leaves it to clients


def test_hits_appear_while_typing(site: Running, visit: Visit) -> None:
    page = visit(site.url)
    page.wait_for_selector("#fields .chip")
    page.locator("#query").press_sequentially(TEXTS[7], delay=5)
    first_becomes(page, TEXTS[7])
    assert len(texts(page, "retrieved")) == 10
    bar = page.locator("#retrieved-hits .fill").first
    assert bar.evaluate("bar => bar.style.width") == "100%"
    page.click("#more")
    assert len(texts(page, "retrieved")) == 20
    page.fill("#query", "")
    page.wait_for_selector("#orders", state="hidden")


def test_hits_appear_while_a_syllable_is_made(site: Running, visit: Visit) -> None:
    """Hangul is composed: its last syllable is unfinished until the next one begins, and Enter may only finish it."""
    page = visit(site.url)
    page.wait_for_selector("#fields .chip")
    page.focus("#query")
    keyboard = page.context.new_cdp_session(page)
    for made in ("ㅂ", "바", "받", "바다"):
        keyboard.send("Input.imeSetComposition", {"text": made, "selectionStart": len(made), "selectionEnd": len(made)})
    page.wait_for_function("() => decodeURIComponent(location.hash) === '#search?q=바다'")
    page.wait_for_selector("#retrieved-hits .hit")
    assert page.input_value("#query") == "바다"


def test_an_answer_that_is_late_is_dropped(site: Running, visit: Visit) -> None:
    held: list[Any] = []

    def hold(route: Any) -> None:
        is_first = TEXTS[0] in route.request.post_data
        held.append(route) if is_first else route.continue_()

    page = visit(site.url)
    page.wait_for_selector("#fields .chip")
    page.route("**/search", hold)
    page.fill("#query", TEXTS[0])
    status_becomes(page, "Searching")
    searched(page, TEXTS[5])
    for route in held:
        route.continue_()
    page.wait_for_selector("#reranked-hits .hit")
    assert (len(held), texts(page, "retrieved")[0]) == (1, TEXTS[5])


def test_both_orders_side_by_side(site: Running, visit: Visit) -> None:
    page = visit(f"{site.url}/#search?q=money")
    page.wait_for_selector("#reranked-hits .hit")
    asked = {"query": "money", "k": 50, "candidates": 50}
    before, after = (
        [hit["text"] for hit in site.client.post("/search", json={**asked, "rerank": rerank}).json()["hits"]]
        for rerank in (False, True)
    )
    assert texts(page, "retrieved") == before[:10]
    assert texts(page, "reranked") == after[:10]
    for place, (text, moved) in enumerate(zip(after, page.locator("#reranked-hits .moved").all(), strict=False)):
        up = before.index(text) - place
        assert moved.text_content() == (f"▲ {up}" if up > 0 else f"▼ {-up}" if up < 0 else "＝")
    assert page.locator("#moves path").count() == len({*before[:10]} & {*after[:10]})
    left, right = (page.locator(f"#{name}").bounding_box() for name in ("retrieved", "reranked"))
    assert left["x"] + left["width"] < right["x"]
    page.click("text=Re-rank >> visible=true")
    page.wait_for_selector("#reranked", state="hidden")


def test_filter(site: Running, visit: Visit) -> None:
    page = visit(f"{site.url}/#search?q=money")
    page.wait_for_selector("#reranked-hits .hit")
    assert page.locator("#fields .chip bdi").all_text_contents() == ["lang", "year"]
    page.fill("#where", "year >= 2030 and lang = 'ko'")
    wanted = {text for n, text in enumerate(TEXTS) if n >= 30 and n % 2 == 0}
    number_becomes(page, len(wanted), "#reranked-hits .hit")
    assert {*texts(page, "retrieved")} == {*texts(page, "reranked")} == wanted
    page.fill("#where", "year >= ")
    page.wait_for_selector("#where-problem:visible")
    assert "can't be read yet: expected a number" in page.text_content("#where-problem")
    assert {*texts(page, "retrieved")} == wanted
    page.fill("#where", "")
    page.wait_for_selector("#where-problem", state="hidden")
    page.locator("#retrieved-hits .chip", has_text="en").first.click()
    assert page.input_value("#where") == "lang = 'en'"
    page.wait_for_function("() => !document.getElementById('retrieved-hits').innerText.includes('ko')")
    assert [about[:2] for about in page.locator("#retrieved-hits .about").all_text_contents()] == ["en"] * 10


def test_server_gone_and_back(model: BiEncoder, visit: Visit) -> None:
    with running(service(model)) as first:
        port = int(first.url.rpartition(":")[2])
        page = visit(first.url)
        page.wait_for_selector("#fields .chip")
        searched(page, TEXTS[3])
    page.fill("#query", TEXTS[4])
    page.wait_for_selector("#banner:visible")
    assert "can't be reached" in page.text_content("#banner-text")
    assert texts(page, "retrieved")[0] == TEXTS[3]
    with running(service(model), port=port):
        first_becomes(page, TEXTS[4])
        assert page.text_content("#banner-text") == "The server is back."
        page.wait_for_selector("#banner", state="hidden")


def test_a_busy_server_is_asked_again(site: Running, visit: Visit) -> None:
    refusals = [{"status": 429, "headers": {"retry-after": "1"}, "json": {"error": "full", "error_type": "Overloaded"}}]
    page = visit(site.url)
    page.wait_for_selector("#fields .chip")
    page.route("**/search", lambda route: route.fulfill(**refusals.pop()) if refusals else route.continue_())
    page.fill("#query", TEXTS[6])
    status_becomes(page, "The server is busy; trying again in 1 s.")
    first_becomes(page, TEXTS[6])
    refusals.append({"status": 500, "json": {"error": "<b>no</b>", "error_type": "Internal"}})
    page.fill("#query", TEXTS[7])
    status_becomes(page, "That didn't work: <b>no</b>")
    assert texts(page, "retrieved")[0] == TEXTS[6]
