"""Texts cut into sentences, Korean and English, without a model."""

import re

# After a mark that ends a sentence, with closing quotes or brackets, before white space; or at a line's end. A single
# capital ("J. Smith") and common abbreviations end nothing.
END = re.compile(r"(?<=[.!?。！？…])([\"'”’)\]」』]*)\s+|\n+")
ABBREVIATION = re.compile(r"(?:\b[A-Z]|\b(?:Mr|Mrs|Ms|Dr|Prof|St|vs|etc|e\.g|i\.e|cf|No|Fig|al))\.$")


def split(text: str) -> list[str]:
    """The sentences of a text, without white space around them.

    >>> split('Dr. Kim came. "Why?" 그는 물었다. 비가 왔다.')
    ['Dr. Kim came.', '"Why?"', '그는 물었다.', '비가 왔다.']
    """
    found, start = [], 0
    for match in END.finditer(text):
        end = match.end(1) if match[1] is not None else match.start()
        piece = text[start:end]
        if "\n" not in match[0] and ABBREVIATION.search(piece):
            continue
        found.append(piece.strip())
        start = match.end()
    found.append(text[start:].strip())
    return [piece for piece in found if piece]
