"""Show the examples of docstrings as code with a copy button: mkdocs.yml names this extension of griffe."""

from typing import Any

import griffe

from docs.site.text import fenced


class Examples(griffe.Extension):
    """Fence the examples of everything that griffe reads."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
