"""Why tests of sentence-transformers end otherwise with munjang.compat; docs/compat.md lists the reasons."""

import re

# A reason, and patterns of the tests or of the errors that it explains
DIFFERENCES: dict[str, tuple[str, ...]] = {}


def reason_of(test: str, why: str) -> str | None:
    """Return the reason for which a test may end otherwise, or None."""
    for reason, patterns in DIFFERENCES.items():
        if any(re.search(pattern, test) or re.search(pattern, why) for pattern in patterns):
            return reason
    return None
