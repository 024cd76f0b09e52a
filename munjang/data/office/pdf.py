"""PDF page by page, with PDFium."""

from munjang.data.office.part import Part, Unreadable
from munjang.errors import MissingExtra

BREAKS = {"\r\n": "\n", "\r": "\n", "\ufffe": "", "\x00": ""}  # U+FFFE: PDFium's mark of a hyphenated line


def read(path: str) -> list[Part]:
    """Return the text of each page."""
    try:
        import pypdfium2
    except ImportError:
        raise MissingExtra("pypdfium2", "office", "Reading PDF") from None
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        is_locked = "password" in str(error).lower()
        raise Unreadable("it is protected with a password" if is_locked else f"PDFium says: {error}") from None
    with document:
        texts = [page.get_textpage().get_text_bounded() for page in document]
    for mark, instead in BREAKS.items():
        texts = [text.replace(mark, instead) for text in texts]
    parts = [Part(text.strip(), number) for number, text in enumerate(texts, 1) if text.strip()]
    if not parts:
        raise Unreadable(f"its {len(texts)} pages hold no text; scans need OCR first")
    return parts
