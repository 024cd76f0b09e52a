"""Check a built site: every link leads to a file and an anchor, and nothing is loaded from elsewhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """The links of a page, what it loads and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            if value and name in ("href", "src"):
                is_loaded = (tag, name) in LOADED and ("rel", "canonical") not in attrs
                (self.loads if is_loaded else self.links).append(value)


def problems(site: Path) -> list[str]:
    """Return what is wrong with the links of a site."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        found += [f"{name}: loads {each} from elsewhere" for each in page.loads if is_elsewhere(each)]
        for link in [*page.links, *page.loads]:
            if not is_elsewhere(link) and (why := problem(path, link, pages)):
                found.append(f"{name}: link to {link}: {why}")
    return sorted(set(found))


def is_elsewhere(link: str) -> bool:
    """Tell whether a link leaves the site."""
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)


def problem(path: Path, link: str, pages: dict[Path, Page]) -> str | None:
    """Return why a link within the site is broken; None if it works."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors and anchor != "__toc":
        return "no such anchor"
    return None
