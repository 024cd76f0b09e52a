"""Photograph pages of the site, wide and on a phone, and search it in Korean: python -m docs.site.screenshots OUT.

Needs playwright and a Chromium. Pages are opened from the disk, with the network cut off.
"""

import sys
from pathlib import Path

from docs.site.build import SITE
from munjang import __version__

PAGES = ("index", "learn/1-words", "learn/5-search", "guides/search", "reference/api/models")
SIZES = {"wide": (1440, 1000), "phone": (390, 844)}
CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]


def main() -> int:
    """Write the pictures; return 1 where a page scrolls sideways, asks the network or finds nothing."""
    from playwright.sync_api import sync_playwright

    out, site, found = Path(sys.argv[1]), SITE / __version__, []
    out.mkdir(parents=True, exist_ok=True)
    browser_path = next(path for path in CHROMIUM if Path(path).exists())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
            page = context.new_page()
            page.on("request", lambda request: found.append(request.url) if request.url.startswith("http") else None)
            for language in ("", "ko/"):
                for name in PAGES:
                    page.goto((site / f"{language}{name}.html").as_uri())
                    page.wait_for_timeout(300)
                    if page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
                        found.append(f"{language}{name} scrolls sideways on a {size} screen")
                    page.screenshot(path=out / f"{size}-{language.strip('/') or 'en'}-{name.replace('/', '-')}.png")
            page.goto((site / "ko/index.html").as_uri())
            for query, expected in (("인코더", "인코더는"), ("토큰", "토큰을"), ("재정렬", "재정렬 모델")):
                if size == "wide":
                    page.fill("input[name=query]", query)
                    page.dispatch_event("input[name=query]", "keyup")  # which playwright leaves out for Hangul
                    page.wait_for_timeout(1500)
                    results = page.inner_text(".md-search-result__list") if page.query_selector("article") else ""
                    print(f"search {query}: {results.count(expected)} times in {len(results)} characters")
                    if expected not in results:
                        found.append(f"search for {query} finds nothing")
                    page.screenshot(path=out / f"search-{query}.png")
        browser.close()
    print("\n".join(found) or "fine")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
