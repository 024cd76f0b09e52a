"""Copy docs/ for MkDocs: with pages from outside it, generated parts, and links that the site can follow.

A line `<!-- build: NAME -->` gets what the function NAME of docs/site/parts.py returns in its place, and a line
`<!-- cell: NAME -->` of a chapter the cell NAME of its notebook, with what it printed. MkDocs' own hooks
can't do this: the plugin of languages takes only files that exist.
"""

import os
import posixpath
import re
import shutil
from functools import cache
from pathlib import Path

from docs.site import notebooks
from docs.site.parts import PARTS

ROOT = Path(__file__).parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}  # of the repository: on the site
COPIED = {".md", ".svg", ".png"}
CELL = re.compile(r"^<!-- cell: ([\w-]+) -->$", re.MULTILINE)
MARK = re.compile(r"^<!-- build: ([\w-]+) -->$", re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1", re.MULTILINE | re.DOTALL)


def prepare(target: Path) -> None:
    """Write the pages as MkDocs reads them into an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    sources = [path for path in (ROOT / "docs").rglob("*") if path.suffix in COPIED and path.is_file()]
    for path in [*sources, *(ROOT / name for name in PAGES)]:
        source = path.relative_to(ROOT).as_posix()
        place = target / (PAGES.get(source) or source.removeprefix("docs/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            place.write_text(page(path.read_text(encoding="utf-8"), source, target), encoding="utf-8")
        else:
            shutil.copy(path, place)
    for notebook in notebooks.NOTEBOOKS.glob("*.py"):
        for folder in ("learn", "ko/learn"):  # a page of each language has it beside it
            notebooks.convert(notebook, target / folder / "notebooks" / f"{notebook.stem}.ipynb")
    for asset in ("style.css", "iframe-worker.js"):
        shutil.copy(ROOT / "docs/site" / asset, target)


def page(text: str, source: str, target: Path) -> str:
    """Return a page of the repository as the site has it."""
    text = MARK.sub(lambda match: part(match[1]), text)
    if CELL.search(text):
        text = chapter(text, Path(source).name.split(".")[0], source.endswith(".ko.md"))
    fences = [match.span() for match in FENCE.finditer(text)]

    def replaced(match: re.Match[str]) -> str:
        is_code = any(start <= match.start() < end for start, end in fences)
        return match[0] if is_code else link(match, source, target)

    return LINK.sub(replaced, text)


def chapter(text: str, name: str, is_korean: bool) -> str:
    """Return a chapter with the cells of its notebook, and where and when they ran."""
    text = CELL.sub(lambda match: notebooks.shown(name, match[1]), text)
    record = notebooks.record_of(name)
    machine, seconds, day = record["machine"], record["seconds"], record["date"]
    if is_korean:
        ran = f"{machine}에서 {seconds}초 걸렸습니다({day}). 노트북 받기"
    else:
        ran = f"Ran in {seconds} s with {machine} ({day}). Download the notebook"
    return f'{text}\n---\n\n<small>{ran}: <a href="notebooks/{name}.ipynb" download>{name}.ipynb</a></small>\n'


@cache
def part(name: str) -> str:
    """Return a generated part."""
    return PARTS[name]()


def link(match: re.Match[str], source: str, target: Path) -> str:
    """Return a link as it is within docs/, to a page or picture added here, or only its text."""
    mark, text, address = match.groups()
    if re.match(r"[a-z]+:|#", address):
        return match[0]
    path, _, anchor = address.partition("#")
    full = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if full.startswith("docs/"):
        on_site = full.removeprefix("docs/")
    elif full in PAGES:
        on_site = PAGES[full]
    elif (ROOT / full).suffix in (".svg", ".png"):  # a picture among the records
        on_site = f"images/{posixpath.basename(full)}"
        (target / "images").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / full, target / on_site)
    else:  # a file of the repository, which this page can't open
        return text if full in text else f"{text} (`{full}`)"
    here = posixpath.dirname(PAGES.get(source) or source.removeprefix("docs/"))
    return f"{mark}[{text}]({os.path.relpath(on_site, here or '.')}{'#' + anchor if anchor else ''})"
