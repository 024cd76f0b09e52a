"""Keywords: the phrases of a text that are nearest to it."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "KeywordConfig": "munjang.tasks.keywords.config",
    "keywords": "munjang.tasks.keywords.extract",
}

if TYPE_CHECKING:
    from munjang.tasks.keywords.config import KeywordConfig as KeywordConfig
    from munjang.tasks.keywords.extract import keywords as keywords
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)


__all__ = sorted(PUBLIC)
