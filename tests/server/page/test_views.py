"""The views of the page, for every visitor: keys and names, languages, themes, phones, a map, what a server has."""

from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder

pytest.importorskip("fastapi")
from munjang.server.limits import AccessRules
from munjang.server.tenants import Keyring
from tests.server.page.visiting import PHONE, TEXTS, Visit, number_becomes, searched, service, texts, width_beyond
from tests.server.running import Running, running

pytestmark = pytest.mark.filterwarnings("ignore::munjang.errors.TruncationWarning")  # the server leaves it to clients


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
    page.route("**/map?*", lambda route: held.append(route))  # Playwright takes no builtin
    for tab in ("map", "search", "map"):
        page.click(f"#tab-{tab}")
    page.wait_for_selector("#map:visible")
    assert len(held) == 1
    held[0].continue_()
    page.wait_for_selector("#picture circle")


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
    with running(service(model), AccessRules(Keyring(["the-key"]))) as locked:
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
