"""A real Chromium, the system's, for tests of the page; without one they skip by name."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Nothing but the page: no sandbox as root, no calls home
FLAGS = """--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-dev-shm-usage"""


def chromium() -> str | None:
    """Where the browser is."""
    return os.environ.get("MUNJANG_CHROMIUM") or next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser until the block ends."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="no browser tests without playwright")
    path = chromium()
    if path is None:
        pytest.skip(f"no Chromium for the page: looked for {', '.join(NAMES)} and MUNJANG_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()
