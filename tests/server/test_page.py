"""The page in a real browser, over a real server with tiny models.

Their weights are random, so hits mean nothing, but a text's own words find it first.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.index import Index
from munjang.server.embedder import Embedder
from munjang.server.reranker import Reranker
from munjang.server.rules import Rules
from munjang.server.service import Service
from tests.server.browser import browsing
from tests.server.running import Running, running

WORDS = ["sea", "mountain", "river", "money", "court", "bread", "music", "train", "doctor", "forest"]
TEXTS = [f"The {a} and the {b}" for a in WORDS for b in WORDS[:4] if a != b]
HOSTILE = {
    "markup": '<img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script><b>bold</b>',
    "long": "x" * 5000,
    "reversed": "\u202eabc \u05e9\u05dc\u05d5\u05dd\u202c \u0645\u0631\u062d\u0628\u0627 \x07 \u200b",
}
pytestmark = pytest.mark.filterwarnings("ignore::munjang.errors.TruncationWarning")  # the server leaves it to clients
PHONE = {"width": 360, "height": 740}
Visit = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For this file alone: while Playwright runs, its thread can't run an event loop of another test."""
    with browsing() as started:
        yield started


def service(model: BiEncoder, scorer: CrossEncoder | None = None, with_index: bool = True) -> Service:
    index = Index.open("memory:", model) if with_index else None
    if index is not None:
        metadata = [{"lang": "en" if n % 2 else "ko", "year": 2000 + n} for n in range(len(TEXTS))]
        index.add(TEXTS, [f"d/{n}" for n in range(len(TEXTS))], metadata)
    return Service([Embedder("tiny", model)], [] if scorer is None else [Reranker("ranker", scorer)], index)


@pytest.fixture(scope="module")
def site(model: BiEncoder, scorer: CrossEncoder, browser: Any) -> Iterator[Running]:
    with running(service(model, scorer)) as started:
        yield started


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    """`visit(url, locale="ko-KR", ...)`: a new visitor's page. What the browser complains of fails the test."""
    with ExitStack() as contexts:
        complaints: list[str] = []

        def open_page(url: str, **options: Any) -> Any:
            context = browser.new_context(**{"locale": "en-US", "viewport": {"width": 1200, "height": 800}, **options})
            contexts.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(60_000)  # of a machine that has other things to do
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
            page.goto(url)
            return page

        yield open_page
    # a refused or lost request is a line of the console too, and meant in these tests
    assert [line for line in complaints if not line.startswith("Failed to load resource")] == []


def texts(page: Any, order: str) -> list[str]:
    found: list[str] = page.locator(f"#{order}-hits .text").all_text_contents()
    return found


def searched(page: Any, query: str) -> None:
    """Type, and wait until the order of this query is there."""
    page.fill("#query", query)
    page.wait_for_function("query => location.hash === `#search?q=${encodeURIComponent(query)}`", arg=query)


def first_becomes(page: Any, text: str) -> None:
    page.wait_for_function("text => document.querySelector('#retrieved-hits .text')?.textContent === text", arg=text)


def number_becomes(page: Any, number: int, what: str) -> None:
    page.wait_for_function("([what, number]) => document.querySelectorAll(what).length === number", arg=[what, number])


def status_becomes(page: Any, text: str) -> None:
    page.wait_for_function("text => document.getElementById('status').textContent.startsWith(text)", arg=text)


def width_beyond(page: Any) -> int:
    """How far the page could be scrolled sideways."""
    beyond: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return max(0, beyond)


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


def test_keyboard(site: Running, visit: Visit) -> None:
    page = visit(f"{site.url}/#similarity")
    page.wait_for_selector("#heat-scroll td")
    focused = "document.activeElement.id || document.activeElement.closest('.hits')?.id"
    page.locator("#tab-similarity").focus()
    page.keyboard.press("/")
    assert page.evaluate(focused) == "query"
    page.keyboard.type("money")
    page.wait_for_selector("#reranked-hits .hit")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "retrieved-hits"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "reranked-hits"
    second = texts(page, "reranked")[1]
    assert second in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("#document[open]")
    assert page.text_content("#document .whole") == second
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "reranked-hits"
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "query"
    page.keyboard.press("Escape")
    assert page.input_value("#query") == ""
    page.locator("#tab-search").focus()
    page.keyboard.press("ArrowLeft")
    assert (page.evaluate(focused), page.is_visible("#map")) == ("tab-map", True)


def test_every_control_has_a_name(site: Running, visit: Visit) -> None:
    page = visit(f"{site.url}/#search?q=money")
    page.wait_for_selector("#reranked-hits .hit")
    page.click("#tab-map")
    page.wait_for_selector("#picture circle")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, textarea, [role=listbox]')].filter(each =>
        !each.textContent.trim() && !each.getAttribute('aria-label') && !each.labels?.length
        && !document.getElementById(each.getAttribute('aria-labelledby'))).map(each => each.outerHTML)"""
    )
    assert nameless == []
    landmarks = ("main", "header.bar", "footer", "form[role=search]", "h1")
    assert [page.locator(name).count() for name in landmarks] == [1] * 5


def test_language_is_switched_and_remembered(site: Running, visit: Visit) -> None:
    page = visit(f"{site.url}/#search?q=money", locale="ko-KR")
    page.wait_for_selector("#reranked-hits .hit")
    assert page.get_attribute("html", "lang") == "ko"
    assert page.text_content("#reranked-title") == "재정렬 순서"
    page.click("#language")
    assert page.get_attribute("html", "lang") == "en"
    assert page.text_content("#reranked-title") == "Re-ranked order"
    page.reload()
    page.wait_for_selector("#reranked-hits .hit")
    assert page.text_content("#tab-search") == "Search"


def test_light_and_dark(site: Running, visit: Visit) -> None:
    page = visit(site.url, color_scheme="dark")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(paper)
    page.click("#theme")  # from the system's to light
    light = page.evaluate(paper)
    assert sum(map(int, light[4:-1].split(", "))) > 600 > 150 > sum(map(int, dark[4:-1].split(", ")))
    page.reload()
    assert page.evaluate(paper) == light


def test_similarity(site: Running, visit: Visit, model: BiEncoder) -> None:
    page = visit(f"{site.url}/#similarity")
    page.fill("#first", "sea")
    page.fill("#second", "mountain")
    wanted = f"{model.similarity('sea', 'mountain'):.3f}"
    page.wait_for_function("score => document.getElementById('closeness').textContent === score", arg=wanted)
    page.fill("#many", "sea\nmountain\n\nriver\n")
    number_becomes(page, 9, "#heat-scroll tbody td")
    page.locator("#heat-scroll tbody tr").nth(0).locator("td").nth(1).hover()
    assert page.text_content("#heat-pair") == f"{wanted} sea ↔ mountain"


def test_map(site: Running, visit: Visit) -> None:
    page = visit(f"{site.url}/#map")
    page.wait_for_selector("#picture circle")
    number = site.client.get("/documents").json()["passages"]
    assert page.locator("#picture circle").count() == number
    page.locator("#picture").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    active = page.locator("#picture .active")
    assert page.get_attribute("#picture", "aria-activedescendant") == active.get_attribute("id")
    page.keyboard.press("Enter")
    page.wait_for_selector("#document[open]")
    assert page.text_content("#document .whole").startswith(active.get_attribute("aria-label")[:100])
    page.keyboard.press("Escape")
    page.locator("#groups button").first.click()
    assert 0 < page.locator("#picture .faded").count() < number
    page.select_option("#colours", "lang")
    languages = page.locator("#groups bdi").all_text_contents()
    assert {"ko", "en"} <= {*languages}
    for language in ("ko", "en"):
        colour = f"#picture .colour-{languages.index(language)}"
        assert page.locator(colour).count() == len(TEXTS) // 2


def test_a_map_that_is_opened_again_while_it_loads(site: Running, visit: Visit) -> None:
    held: list[Any] = []
    page = visit(site.url)  # which fails by what the page throws
    page.wait_for_selector("#fields .chip")
    page.route("**/map", lambda route: held.append(route))  # Playwright takes no builtin
    for tab in ("map", "search", "map"):
        page.click(f"#tab-{tab}")
    page.wait_for_selector("#map:visible")
    assert len(held) == 1
    held[0].continue_()
    page.wait_for_selector("#picture circle")


def test_values_keep_their_digits(site: Running, visit: Visit) -> None:
    page = visit(site.url)
    call = "async given => { const { valueOf } = await import('/page/adding.js'); return given.map(([text, kind]) => "
    numbers = {"7": 7, " -2 ": -2, "0": 0, "0.25": 0.25, "9007199254740991": 2**53 - 1, "True": True}
    texts = ["01012345678", "9007199254740993", "1.50", "+7", "-0", "1e3", "Infinity", "NaN"]
    found = page.evaluate(f"{call} valueOf(text, kind)) }}", [[each, None] for each in (*numbers, *texts)])
    assert found == [*numbers.values(), *texts]
    kinds = {("1.50", "float"): 1.5, ("+.5", "float"): 0.5, ("7", "text"): "7", ("007", "int"): "007"}
    assert page.evaluate(f"{call} valueOf(text, kind)) }}", [[*each] for each in kinds]) == [*kinds.values()]


@pytest.mark.parametrize("locale", ["ko-KR", "en-US"])
def test_a_phone_needs_no_sideways_scrolling(locale: str, site: Running, visit: Visit) -> None:
    page = visit(f"{site.url}/#search?q=money", viewport=PHONE, locale=locale)
    page.wait_for_selector("#reranked-hits .hit")
    assert not page.is_visible("#retrieved")
    page.click("#show-retrieved")
    assert (page.is_visible("#retrieved"), page.is_visible("#reranked")) == (True, False)
    beyond = {"search": width_beyond(page)}
    for view, ready in {"similarity": "#heat-scroll td", "map": "#picture circle"}.items():
        page.click(f"#tab-{view}")
        page.wait_for_selector(ready)
        beyond[view] = width_beyond(page)
    page.click("#tab-search")
    page.click("#add")
    beyond["adding"] = page.locator("#adding").evaluate("sheet => sheet.scrollWidth - sheet.clientWidth")
    assert beyond == dict.fromkeys(beyond, 0)


def test_key_is_asked_for(model: BiEncoder, visit: Visit) -> None:
    with running(service(model), Rules(keys=("the-key",))) as locked:
        page = visit(locked.url)
        for key in ("wrong", "the-key"):
            page.wait_for_selector("#locked[open]")
            page.fill("#key", key)
            page.keyboard.press("Enter")
            if key == "wrong":
                page.wait_for_selector("#key-problem:visible")
        page.wait_for_selector("#fields .chip")
        searched(page, TEXTS[2])
        page.reload()  # kept in this tab
        page.wait_for_selector("#retrieved-hits .hit")
        assert not page.is_visible("#locked")


def test_what_a_server_has_not(model: BiEncoder, visit: Visit) -> None:
    with running(service(model)) as plain:
        page = visit(plain.url)
        page.wait_for_selector("text=This server has no re-ranker")
        searched(page, TEXTS[2])
        assert not page.is_visible("#reranked")
    with running(service(model, with_index=False)) as bare:
        page = visit(bare.url)
        page.wait_for_selector("text=This server has no index")
        page.click("#tab-similarity")
        page.wait_for_selector("#heat-scroll td")
        assert page.evaluate("document.getElementById('search-form').inert") is True
