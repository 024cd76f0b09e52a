"""HWPX, the open format of Hangul (한글): a zip of XML files, read with the standard library alone.

Contents/sectionN.xml holds paragraphs (p) of runs of text (t), tables (tbl, tr, tc) and notes; a paragraph's style,
named in Contents/header.xml, tells whether it is a heading.
"""

import re
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from munjang.data.office.part import Part, Unreadable

MAX_XML_BYTES = 256 << 20  # of one file, unpacked
SECTION = re.compile(r"Contents/section(\d+)\.xml\Z", re.IGNORECASE)
HEADER, MANIFEST = "Contents/header.xml", "META-INF/manifest.xml"
OUTLINE = re.compile(r"\s*(개요|outline|제목|heading|title)\b.*", re.IGNORECASE)  # names of the styles of headings
GAPS = {"tab": "\t", "lineBreak": "\n", "nbSpace": " ", "fwSpace": " ", "hyphen": "-"}
LEFT_OUT = {"header", "footer", "secPr", "hiddenComment"}  # repeated on every page, or not for readers


def read(path: str) -> list[Part]:
    """Return the text under each heading."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        if MANIFEST in names and b"encryption-data" in archive.read(MANIFEST):
            raise Unreadable("it is protected with a password")
        sections = sorted((name for name in names if SECTION.match(name)), key=_number)
        if not sections:
            raise Unreadable("it has no Contents/section0.xml; is it HWPX?")
        headings = _heading_styles(_xml(archive, HEADER)) if HEADER in names else set()
        paragraphs = [pair for name in sections for pair in _paragraphs(_xml(archive, name), headings)]
    parts: list[tuple[str | None, list[str]]] = [(None, [])]
    for text, is_heading in paragraphs:
        if is_heading:
            parts.append((text, []))
        parts[-1][1].append(text)
    return [Part("\n".join(lines), heading=heading) for heading, lines in parts if lines]


def _number(name: str) -> int:
    match = SECTION.match(name)
    return int(match[1]) if match else 0


def _xml(archive: zipfile.ZipFile, name: str) -> Element:
    if archive.getinfo(name).file_size > MAX_XML_BYTES:
        raise Unreadable(f"{name} has more than {MAX_XML_BYTES >> 20} MiB")
    content = archive.read(name)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # no program writes them, and they can grow without end
        raise Unreadable(f"{name} declares entities")
    return ElementTree.fromstring(content)


def _heading_styles(header: Element) -> set[str]:
    """Return the ids of the styles of headings, by their Korean or English name."""
    styles = (element for element in header.iter() if _tag(element) == "style")
    names = {style.get("id", ""): (style.get("name", ""), style.get("engName", "")) for style in styles}
    return {id for id, pair in names.items() if any(OUTLINE.match(name) for name in pair)}


def _paragraphs(element: Element, headings: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield the text of each paragraph below an element and whether it is a heading; a row of a table is one."""
    for child in element:
        tag = _tag(child)
        if tag == "tr":
            cells = [" ".join(text for text, _ in _paragraphs(cell, headings)) for cell in child]
            if any(cells):
                yield " | ".join(cells), False
        elif tag == "p":
            text = "".join(_own_text(child)).strip()
            if text:
                yield text, child.get("styleIDRef", "") in headings
            yield from _paragraphs(child, headings)  # tables, boxes and notes that stand in it
        elif tag not in LEFT_OUT:
            yield from _paragraphs(child, headings)


def _own_text(paragraph: Element) -> Iterator[str]:
    """Yield what the runs of a paragraph say, without what is nested in it."""
    for run in paragraph:
        for text in run if _tag(run) == "run" else ():
            if _tag(text) == "t":
                yield text.text or ""
                for mark in text:
                    yield GAPS.get(_tag(mark), "")
                    yield mark.tail or ""


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]
