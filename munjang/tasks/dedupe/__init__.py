"""Texts that repeat what another says, dropped with the reason."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "dedupe": "munjang.tasks.dedupe.deduplication",
}

if TYPE_CHECKING:
    from munjang.tasks.dedupe.deduplication import dedupe as dedupe
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__ = loader(__name__, PUBLIC)


def __dir__() -> list[str]:
    return list(PUBLIC)


__all__ = sorted(PUBLIC)
