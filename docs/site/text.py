"""Text for the site: cells of Markdown tables, examples of docstrings."""

import re

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


def escaped(text: str) -> str:
    """Return a text that a cell of a table can hold.

    >>> escaped("a | b\\n<c>")
    'a \\\\| b &lt;c>'
    """
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def fenced(docstring: str) -> str:
    r"""Put each example, from its first `>>>` to a blank line, between fences.

    >>> fenced("Add.\n\n>>> 1 + 1\n2\n\nMore.").count("```")
    2
    """
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", docstring)
