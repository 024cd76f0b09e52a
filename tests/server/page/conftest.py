"""A browser, a site and visitors, for each file of tests of the page."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from tests.server.browser import browsing

if TYPE_CHECKING:  # the server's packages may be missing
    from tests.server.page.visiting import Visit
    from tests.server.running import Running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For one file alone: while Playwright runs, its thread can't run an event loop of another test."""
    with browsing() as started:
        yield started


@pytest.fixture(scope="module")
def site(model: BiEncoder, scorer: CrossEncoder, browser: Any) -> "Iterator[Running]":
    from tests.server.page.visiting import service
    from tests.server.running import running

    with running(service(model, scorer)) as started:
        yield started


@pytest.fixture
def visit(browser: Any) -> "Iterator[Visit]":
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
