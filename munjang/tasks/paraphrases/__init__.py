"""Pairs that mean the same: paraphrases, translations, and the graph of neighbours that they make."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "bitext": "munjang.tasks.paraphrases.translations",
    "paraphrases": "munjang.tasks.paraphrases.mining",
}

if TYPE_CHECKING:
    from munjang.tasks.paraphrases.mining import paraphrases as paraphrases
    from munjang.tasks.paraphrases.translations import bitext as bitext
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)


__all__ = sorted(PUBLIC)
