"""Verdict: what one part of the attack counted, and what did not hold."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Verdict:
    """Counts and figures of one part by name; `failures` say what was expected and what came instead."""

    name: str
    counts: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        """Note a failure where something does not hold."""
        if not holds:
            self.failures.append(otherwise)

    @property
    def has_held(self) -> bool:
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"name": self.name, "held": self.has_held, "counts": self.counts, "failures": self.failures}

    def __str__(self) -> str:
        lines = [f"{self.name}: {'held' if self.has_held else 'FAILED'}"]
        lines += [f"  {name}: {_shown(value)}" for name, value in self.counts.items()]
        return "\n".join([*lines, *(f"  FAILED: {failure}" for failure in self.failures)])


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
