"""Record what a network computes, for tests that nothing is computed twice."""

from typing import Any

import pytest


def tokens_seen(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tokens of each batch from now on."""
    seen: list[int] = []
    forward = encoder.forward

    def counting(batch: Any) -> Any:
        seen.append(batch.num_tokens)
        return forward(batch)

    monkeypatch.setattr(encoder, "forward", counting)
    return seen
