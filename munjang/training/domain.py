"""Texts of a domain as training data: alone, or as pairs that the texts themselves suggest."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from munjang.data.examples import Examples
from munjang.data.tables import read_texts
from munjang.errors import InputError
from munjang.text.sentences import split

MIN_SENTENCE_CHARACTERS = 12  # shorter ones teach nothing


def read_domain(sources: Sequence[str], column: str | None = None) -> list[str]:
    """Read every distinct text of files and folders, in order."""
    texts: dict[str, None] = {}
    for source in sources:
        if not Path(source).exists():
            raise InputError(f"{source}: no such file or folder")
        for path in sorted(Path(source).rglob("*")) if Path(source).is_dir() else [Path(source)]:
            if path.is_file():
                texts |= dict.fromkeys(text.strip() for text in read_texts(path, column))
    texts.pop("", None)
    if not texts:
        raise InputError(f"There are no texts in {', '.join(sources)}.")
    return list(texts)


def alone(texts: list[str], name: str) -> Examples:
    """Return sentences, one a row, for masked and denoising objectives."""
    sentences = dict.fromkeys(
        sentence for text in texts for sentence in split(text) if len(sentence) >= MIN_SENTENCE_CHARACTERS
    )
    return Examples(name, (list(sentences) or texts,), ("text",))


def pairs(texts: list[str], name: str) -> Examples:
    """Pair neighbouring sentences of a text, and a text's first sentence with the rest of it."""
    rows: dict[tuple[str, str], None] = {}
    for text in texts:
        sentences = [sentence for sentence in split(text) if len(sentence) >= MIN_SENTENCE_CHARACTERS]
        rows |= dict.fromkeys(pairwise(sentences))
        if len(sentences) > 2:
            rows[sentences[0], " ".join(sentences[1:])] = None
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
