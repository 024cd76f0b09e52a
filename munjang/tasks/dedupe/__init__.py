"""Texts that repeat what another says, dropped with the reason."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "dedupe": "munjang.tasks.dedupe.deduplication",
}

if TYPE_CHECKING:
    from munjang.tasks.dedupe.deduplication import dedupe as dedupe
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)


__all__ = sorted(PUBLIC)
