"""Pages read back: every tag has to be closed, and what a page would fetch is collected."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The words of a page, the rows of its tables, its bold words, and what it would fetch."""

    VOID = ("meta", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []
        self.rows: list[list[str]] = []
        self.bold: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.fetched += [f"{tag} {value}" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Skip the shapes of the icon."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"style", "script"} & {*self.open}:
            return
        self.words += data
        if {"td", "th"} & {*self.open}:
            self.rows[-1][-1] += data
        if self.open[-1:] == ["b"]:
            self.bold.append(data)
