"""Word, PowerPoint, Excel, HTML, EPUB and Outlook by markitdown, whose Markdown is cut at headings and slides."""

import re
from pathlib import Path

from munjang.data.office.part import Part, by_headings
from munjang.errors import MissingExtra

SLIDE = re.compile(r"<!-- Slide number: (\d+) -->")
RULE = re.compile(r"^\|(?: *:?-+:? *\|)+\n?", re.MULTILINE)  # the line below the head of a table
EMPTY_CELL = re.compile(r"(?<=\| )(?:NaN|Unnamed: \d+)(?= \|)")  # pandas' words for nothing
IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")  # only its description is text
CONVERTERS = {
    ".docx": "DocxConverter",
    ".pptx": "PptxConverter",
    ".xlsx": "XlsxConverter",
    ".html": "HtmlConverter",
    ".htm": "HtmlConverter",
    ".epub": "EpubConverter",
    ".msg": "OutlookMsgConverter",
}


def read(path: str) -> list[Part]:
    """Return the text under each heading; of a presentation, of each slide."""
    try:
        from markitdown import StreamInfo, converters
    except ImportError:
        raise MissingExtra("markitdown", "office", "Reading office files") from None
    suffix = Path(path).suffix.lower()
    with open(path, "rb") as file:
        convert = getattr(converters, CONVERTERS[suffix])().convert
        markdown = convert(file, StreamInfo(extension=suffix)).markdown
    return parts_of(markdown, suffix)


def parts_of(markdown: str, suffix: str) -> list[Part]:
    """Cut what markitdown wrote."""
    text = IMAGE.sub(r"\1", RULE.sub("", markdown))
    if suffix == ".xlsx":
        text = EMPTY_CELL.sub("", text)
    if suffix != ".pptx":
        return list(by_headings(text))
    pieces = SLIDE.split(text)  # what is before the first slide, then a number and a text in turns
    slides = zip(map(int, pieces[1::2]), pieces[2::2], strict=True)
    return [part for number, slide in slides for part in by_headings(slide, number)]
