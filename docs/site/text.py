"""Text for cells of Markdown tables."""


def escaped(text: str) -> str:
    """Return a text that a cell of a table can hold.

    >>> escaped("a | b\\n<c>")
    'a \\\\| b &lt;c>'
    """
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
