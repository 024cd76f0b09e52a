"""E-mail (.eml), read with the standard library: subject, people, date and body; attachments are named."""

import email
import email.policy
import re
from email.message import EmailMessage, MIMEPart
from html.parser import HTMLParser

from munjang.data.office.part import Part, Unreadable

HEADERS = ("Subject", "From", "To", "Cc", "Date")
BLOCKS = {"p", "div", "br", "tr", "li", "table", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote"}
UNSEEN = {"script", "style", "head", "title"}


def read(path: str) -> list[Part]:
    """Return one part, under its subject."""
    with open(path, "rb") as file:
        message = email.message_from_binary_file(file, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    head = [f"{name}: {message[name]}" for name in HEADERS if message[name]]
    if not head:
        raise Unreadable("it has none of the headers of an e-mail")
    body = message.get_body(("plain", "html"))
    text = "" if body is None else _content(body)
    attachments = [name for part in message.iter_attachments() if (name := part.get_filename())]
    foot = [f"Attachments: {', '.join(attachments)}"] if attachments else []
    subject = str(message["Subject"] or "").strip() or None
    return [Part("\n".join([*head, "", text.strip(), *foot]).strip(), heading=subject)]


def _content(body: MIMEPart) -> str:
    try:
        text = str(body.get_content())
    except (LookupError, UnicodeDecodeError):  # a character set that doesn't exist, or another one than it says
        text = bytes(body.get_payload(decode=True) or b"").decode("utf-8", "replace")
    return seen_text(text) if body.get_content_type() == "text/html" else text


def seen_text(html: str) -> str:
    """Return what a reader sees of HTML.

    >>> seen_text("<style>p{}</style><p>One</p><p>Two &amp; three</p>")
    'One\\nTwo & three'
    """
    parser = _Seen()
    parser.feed(html)
    parser.close()
    return re.sub(r"\n\s*\n+", "\n", "".join(parser.texts)).strip()


class _Seen(HTMLParser):
    """Collects texts that are shown."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.unseen += tag in UNSEEN
        if tag in BLOCKS:
            self.texts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.unseen = max(0, self.unseen - (tag in UNSEEN))
        if tag in BLOCKS:
            self.texts.append("\n")

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.texts.append(data)
