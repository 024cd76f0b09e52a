"""Texts of a domain as training data: alone, or as pairs that the texts themselves suggest."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from munjang.data.examples import Examples
from munjang.data.tables import read_texts
from munjang.errors import InputError
from munjang.text.sentences import split

SHORTEST = 12  # characters of a sentence worth learning from


def read_domain(sources: Sequence[str], column: str | None = None) -> list[str]:
    """Every different text of files and folders, in order."""
    found: dict[str, None] = {}
    for source in sources:
        if not Path(source).exists():
            raise InputError(f"{source}: no such file or folder")
        for path in sorted(Path(source).rglob("*")) if Path(source).is_dir() else [Path(source)]:
            if path.is_file():
                found |= dict.fromkeys(text.strip() for text in read_texts(path, column))
    found.pop("", None)
    if not found:
        raise InputError(f"There are no texts in {', '.join(sources)}.")
    return list(found)


def alone(texts: list[str], name: str) -> Examples:
    """Sentences, one a row: what masked and denoising objectives learn from."""
    pieces = dict.fromkeys(piece for text in texts for piece in split(text) if len(piece) >= SHORTEST)
    return Examples(name, (list(pieces) or texts,), ("text",))


def pairs(texts: list[str], name: str) -> Examples:
    """Neighbouring sentences of a text, and a text's first sentence with the rest of it: they belong together."""
    rows: dict[tuple[str, str], None] = {}
    for text in texts:
        pieces = [piece for piece in split(text) if len(piece) >= SHORTEST]
        rows |= dict.fromkeys(pairwise(pieces))
        if len(pieces) > 2:
            rows[pieces[0], " ".join(pieces[1:])] = None
    if not rows:
        raise InputError(f"{name}: no text has two sentences, so there are no pairs; use another method.")
    first, second = zip(*rows, strict=True)
    return Examples(name, (list(first), list(second)), ("first", "second"))


# How to adapt: the objective, and the examples that it takes
METHODS: dict[str, tuple[str, Callable[[list[str], str], Examples]]] = {
    "masked": ("masked", alone),
    "denoising": ("denoising", alone),
    "simcse": ("simcse", alone),
    "pairs": ("in_batch", pairs),
}
