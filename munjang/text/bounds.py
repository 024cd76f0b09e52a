"""Bounds of what the files of a tokenizer may ask for: their size, the growth of a text, the length of a token."""

import base64
import json
from math import prod
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models

from munjang.errors import CheckpointError

MAX_FILE_BYTES = 256 * 2**20  # of JSON and vocabularies; a tokenizer of 256,000 tokens takes 35 MB
MAX_GROWTH = 4_000  # of a text's length; ALBERT's steps reach 2,592 in theory, and each of a chain may double it
MAX_TOKEN_CHARS = 1_000  # trying tokens of that length at each place of a text takes that often
UNICODE_GROWTH = 18  # of U+FDFA, the longest of all compatibility characters
GROWTH = {
    **dict.fromkeys(("NFC", "NFD", "NFKC", "NFKD", "BertNormalizer"), UNICODE_GROWTH),
    "Lowercase": 2,
    "ByteLevel": 5,  # bytes of a character, and a space in front
    "Metaspace": 2,
}


def read_file(path: Path) -> str:
    """Return the text of a regular file: reading a pipe or a device would never end."""
    if path.exists() and not path.is_file():
        raise CheckpointError(f"{path} is not a regular file; copy the folder again.")
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise CheckpointError(f"{path} has {size:,} bytes; at most {MAX_FILE_BYTES:,} are read.")
    return path.read_text(encoding="utf-8")


def check_steps(tokenizer: Tokenizer, path: Path) -> None:
    """Refuse steps that would make a short text very long, or search for very long words."""
    steps = [step for step in (tokenizer.normalizer, tokenizer.pre_tokenizer) if step is not None]
    growth = prod(growth_of(json.loads(step.__getstate__())) for step in steps)
    if growth > MAX_GROWTH:
        raise CheckpointError(
            f"{path}: its steps may make a text {growth:.3g} times as long; at most {MAX_GROWTH:,} times is allowed."
        )
    model = tokenizer.model
    if isinstance(model, models.WordPiece) and model.max_input_chars_per_word > MAX_TOKEN_CHARS:
        raise CheckpointError(
            f"{path}: max_input_chars_per_word is {model.max_input_chars_per_word:,}; at most {MAX_TOKEN_CHARS:,} is "
            "allowed, as the time grows with its square."
        )


def growth_of(step: dict[str, Any]) -> float:
    """Return how many times as long a step of tokenizer.json may make a text, at most.

    >>> growth_of({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})
    2.0
    """
    match step["type"]:
        case "Sequence":
            return prod(map(growth_of, step.get("normalizers") or step.get("pretokenizers") or []))
        case "Replace":
            matched = step["pattern"].get("String", "")  # a regular expression may match nothing, at every place
            return max(1.0, len(step["content"]) / len(matched)) if matched else 1.0 + len(step["content"])
        case "Prepend":
            return 1.0 + len(step["prepend"])
        case "Precompiled":
            return _longest(base64.b64decode(step["precompiled_charsmap"]))
        case kind:
            return GROWTH.get(kind, 1)


def _longest(charsmap: bytes) -> int:
    """Return the length of the longest text that SentencePiece's table puts in a character's place."""
    size = int.from_bytes(charsmap[:4], "little")  # of the trie in front, whose leaves point to texts that end with 0
    texts = charsmap[4 + size :].split(b"\0")
    return max((len(text.decode("utf-8", "replace")) for text in texts), default=1) or 1
