"""Office files of every kind, made with their parts spelled out: `MAKERS[suffix](path, title, sections)`."""

import zipfile
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from pathlib import Path
from xml.sax.saxutils import escape

Sections = Sequence[tuple[str, str]]  # heading and text of each; of a PDF and a presentation, each is a page
HP = "http://www.hancom.co.kr/hwpml/2011/paragraph"
HS = "http://www.hancom.co.kr/hwpml/2011/section"
HH = "http://www.hancom.co.kr/hwpml/2011/head"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
    '<Override PartName="/word/styles.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
)
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r1" Type="{type}" Target="{target}"/></Relationships>'
)


def _zip(path: Path, files: dict[str, str | bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def paragraph(text: str, style: int = 0, inside: str = "") -> str:
    return f'<hp:p styleIDRef="{style}"><hp:run><hp:t>{escape(text)}</hp:t>{inside}</hp:run></hp:p>'


def section_xml(body: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?><hs:sec xmlns:hs="{HS}" xmlns:hp="{HP}">{body}</hs:sec>'


def write_hwpx(path: Path, title: str, sections: Sections, **files: str | bytes) -> None:
    styles = '<hh:style id="0" name="바탕글" engName="Normal"/><hh:style id="1" name="개요 1" engName="Outline 1"/>'
    body = "".join(paragraph(heading, 1) + paragraph(text) for heading, text in sections)
    content: dict[str, str | bytes] = {
        "mimetype": "application/hwp+zip",
        "Contents/header.xml": f'<hh:head xmlns:hh="{HH}"><hh:refList>{styles}</hh:refList></hh:head>',
        "Contents/section0.xml": section_xml(paragraph(title) + body),
    }
    _zip(path, {**content, **files})


def write_docx(path: Path, title: str, sections: Sections) -> None:
    def line(text: str, style: str) -> str:
        how = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{how}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"

    body = line(title, "") + "".join(line(heading, "Heading1") + line(text, "") for heading, text in sections)
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    _zip(
        path,
        {
            "[Content_Types].xml": TYPES,
            "_rels/.rels": RELATIONS.format(type=f"{OFFICE}/officeDocument", target="word/document.xml"),
            "word/_rels/document.xml.rels": RELATIONS.format(type=f"{OFFICE}/styles", target="styles.xml"),
            "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": f'<w:styles xmlns:w="{W}">{style}</w:styles>',
        },
    )


def write_pptx(path: Path, title: str, sections: Sections) -> None:
    from pptx import Presentation

    deck = Presentation()
    for heading, text in sections:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = heading
        slide.placeholders[1].text = f"{title}\n{text}"
    deck.save(str(path))


def write_xlsx(path: Path, title: str, sections: Sections) -> None:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for number, (heading, text) in enumerate(sections):
        sheet = book.create_sheet(f"{number} {heading}"[:31].translate(str.maketrans("", "", "[]:*?/\\")))
        sheet.append([title, "text", None])
        sheet.append([heading, text, None])
    book.save(path)


def html_of(title: str, sections: Sections) -> str:
    body = "".join(f"<h2>{escape(heading)}</h2><p>{escape(text)}</p>" for heading, text in sections)
    return f"<html><head><title>{escape(title)}</title><style>p {{}}</style></head><body>{body}</body></html>"


def write_html(path: Path, title: str, sections: Sections, charset: str = "utf-8") -> None:
    content = html_of(title, sections).replace("<head>", f'<head><meta charset="{charset}">')
    path.write_bytes(content.encode(charset))


def write_epub(path: Path, title: str, sections: Sections) -> None:
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml"/>' for n in range(len(sections)))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(sections)))
    opf = (
        '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        f"<dc:title>{escape(title)}</dc:title></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    container = '<container><rootfiles><rootfile full-path="book/content.opf"/></rootfiles></container>'
    chapters = {f"book/c{n}.xhtml": html_of(title, [section]) for n, section in enumerate(sections)}
    _zip(path, {"META-INF/container.xml": container, "book/content.opf": opf, **chapters})


def write_eml(path: Path, title: str, sections: Sections, is_html: bool = False) -> None:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = title, "a@example.com", "b@example.com"
    if is_html:
        message.set_content(html_of(title, sections), subtype="html")
    else:
        message.set_content("\n".join(f"{heading}\n{text}" for heading, text in sections))
    message.add_attachment(b"\x00\x01", "application", "octet-stream", filename="계획.bin")
    path.write_bytes(message.as_bytes())


def write_pdf(path: Path, title: str, sections: Sections) -> None:
    """Write a page for each section; glyphs are numbered by their characters, and a table names them again."""
    texts = [f"{title} {heading} {text}" for heading, text in sections]
    characters = sorted(set("".join(texts)))
    pairs = "".join(f"<{ord(c):04X}> <{ord(c):04X}>\n" for c in characters if ord(c) < 0x10000)
    table = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
        f"1 begincodespacerange <0000> <FFFF> endcodespacerange\n{len(characters)} beginbfchar\n{pairs}endbfchar "
        "endcmap end end"
    )
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "",
        "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[4 0 R]/ToUnicode 5 0 R>>",
        "<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
        "/DW 1000/FontDescriptor 6 0 R>>",
        f"<</Length {len(table)}>>stream\n{table}\nendstream",
        "<</Type/FontDescriptor/FontName/X/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 800/Descent 0"
        "/CapHeight 800/StemV 80>>",
    ]
    kids = []
    for text in texts:
        codes = "".join(f"{ord(c):04X}" for c in text if ord(c) < 0x10000)
        drawn = f"BT /F 12 Tf 20 100 Td <{codes}> Tj ET"
        page = len(objects) + 1
        kids.append(f"{page} 0 R")
        size = 40 + 12 * len(text)
        fonts = "/Resources<</Font<</F 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {size} 200]{fonts}/Contents {page + 1} 0 R>>")
        objects.append(f"<</Length {len(drawn)}>>stream\n{drawn}\nendstream")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(kids)}]/Count {len(kids)}>>"
    content, places = "%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(content))
        content += f"{number} 0 obj{body}endobj\n"
    rows = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{rows}trailer<</Size {len(objects) + 1}/Root 1 0 R>>"
    path.write_bytes(f"{content}{end}\nstartxref\n{len(content)}\n%%EOF".encode("latin-1"))


MAKERS: dict[str, Callable[[Path, str, Sections], None]] = {
    ".hwpx": write_hwpx,
    ".pdf": write_pdf,
    ".docx": write_docx,
    ".pptx": write_pptx,
    ".xlsx": write_xlsx,
    ".html": write_html,
    ".epub": write_epub,
    ".eml": write_eml,
}
EXTRA = {".pdf": "pypdfium2"} | dict.fromkeys((".docx", ".pptx", ".xlsx", ".html", ".epub"), "markitdown")
