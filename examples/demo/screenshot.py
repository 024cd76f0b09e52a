"""The picture in docs/guides/page.md, of a demo that runs; needs playwright and a Chromium.

python -m examples.demo.screenshot http://127.0.0.1:8080 docs/images/page.png
"""

import argparse
import shutil
from urllib.parse import quote

QUERY = "잠이 잘 오지 않을 때 어떻게 하면 좋을까?"


def main() -> None:
    """Open the page as a visitor, search, take the picture."""
    from playwright.sync_api import sync_playwright

    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("address")
    options.add_argument("picture")
    options.add_argument("--query", default=QUERY)
    options.add_argument("--locale", default="en-US")
    given = options.parse_args()
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1160, "height": 800}, locale=given.locale)
        page.goto(f"{given.address}/#search?q={quote(given.query)}")
        page.wait_for_selector("#retrieved-hits .hit")
        page.wait_for_timeout(2500)  # for the re-ranked order, if there is one
        page.mouse.move(0, 0)
        page.screenshot(path=given.picture)
        browser.close()


if __name__ == "__main__":
    main()
