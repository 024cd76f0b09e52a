"""Structures: the tokenizers that may be computed span by span, and why that gives the same ids.

A text is cut at single spaces (U+0020) whose two neighbours are safe. Every distinct span is tokenized once by the
real tokenizer; the ids of a text are the ids of its spans in a row. That is exact if no step of the tokenizer looks
across such a cut:

- Normal forms (NFD in BERT's accent stripping, NFC, NFKC inside SentencePiece's map) reorder and compose marks, never
  across a starter such as the space, and a safe neighbour is no mark. Lower-casing and cleaning go by character.
- SentencePiece's map replaces whole grapheme clusters. A cluster can hold a space only with a mark, joiner or modifier
  behind it or a prepended character in front of it: none of those is safe.
- `wordpiece`: BERT's pre-tokenizer drops white space and isolates punctuation, so no word crosses a space, and
  WordPiece sees one word at a time.
- `metaspace`: every word gets its own leading `▁`, from the space in front of it or from the prefix that a text's start
  gets. A span by itself is a text's start, so its first word gets the same one. This fails if the character behind the
  cut turns into white space or begins with `▁` itself, so such characters are not safe here.
- `bytelevel`: GPT-2's pattern joins one space to what follows and never lets a match run into a space, so a match ends
  at each cut. The space belongs to the span behind it; the first span of a text has none, and is another key.

An added token (`[MASK]`, `<s>`) inside a span may eat the white space around it: such a span is marked, and its text
goes whole through the real tokenizer. A token that could lie across a cut, because it holds a single space itself,
takes its tokenizer off the list. Structures that are not listed never come here.
"""

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE, Model, Unigram, WordPiece

Spec = dict[str, Any]
LONE_SPACE = re.compile("(?<! ) (?! )")  # cuts are made at such spaces only
VISIBLE = re.compile("[!-~]+")

# Letters and symbols that join with a neighbouring space into one grapheme cluster (Unicode 14 to 17): prepended
# letters, halfwidth voicing marks, emoji modifiers, Thai and Lao vowel signs.
JOINING = {
    *(0x0D4E, 0x111C2, 0x111C3, 0x113D1, 0x1193F, 0x11941, 0x11A3A, 0x11D46, 0x11F02, 0xFF9E, 0xFF9F, 0x0E33, 0x0EB3),
    *range(0x11A84, 0x11A8A),
    *range(0x1F3FB, 0x1F400),
}


@dataclass(frozen=True)
class Structure:
    """Says how the spans of one kind of tokenizer are cut."""

    name: str
    keeps_space: bool  # the space in front of a span is part of it


def find(tokenizer: Tokenizer) -> Structure | None:
    """Return the structure of a tokenizer if it is on the list."""
    normalizer, splitter = _spec(tokenizer.normalizer), _spec(tokenizer.pre_tokenizer)
    fitting = (structure for structure, fits in STRUCTURES if fits(tokenizer.model, normalizer, splitter))
    structure = next(fitting, None)
    added = tokenizer.get_added_tokens_decoder().values()
    if structure is None or any(_may_cross_a_cut(token, tokenizer, structure) for token in added):
        return None
    return structure


def _may_cross_a_cut(token: AddedToken, tokenizer: Tokenizer, structure: Structure) -> bool:
    """Tell whether an added token holds a space that stands alone, as it is or as the normalizer shows it."""
    shown = content = str(token.content)
    if token.normalized and tokenizer.normalizer is not None:
        shown = tokenizer.normalizer.normalize_str(content)
        if structure.name == "wordpiece" and " " in shown:  # BERT's normalizer adds spaces of its own beside a cut
            return True
    return not content or any(LONE_SPACE.search(spelling) for spelling in (content, shown))


def _spec(step: Any) -> Spec:
    """Return a step of the pipeline as tokenizer.json spells it; empty: no such step."""
    return {} if step is None else json.loads(step.__getstate__())


def _is_wordpiece(model: Model, normalizer: Spec, splitter: Spec) -> bool:
    return (
        isinstance(model, WordPiece)
        and normalizer.get("type") in (None, "BertNormalizer")
        and splitter.get("type") == "BertPreTokenizer"
    )


def _is_metaspace(model: Model, normalizer: Spec, splitter: Spec) -> bool:
    steps = splitter.get("pretokenizers", []) if splitter.get("type") == "Sequence" else [splitter]
    # behind WhitespaceSplit no word keeps its space, and scheme "first" would give the prefix to the first one only
    schemes = {("Metaspace",): ("always", "first"), ("WhitespaceSplit", "Metaspace"): ("always",)}
    allowed = schemes.get(tuple(str(step.get("type")) for step in steps), ())
    rules = normalizer.get("normalizers", []) if normalizer.get("type") == "Sequence" else [normalizer]
    return (
        isinstance(model, Unigram)
        and steps[-1].get("prepend_scheme") in allowed
        and steps[-1].get("replacement") == "▁"
        and bool(steps[-1].get("split", True))
        and all(_is_plain_rule(rule) for rule in rules)
    )


def _is_plain_rule(rule: Spec) -> bool:
    """Tell whether a normalizer sees a character or a cluster at a time, or only closes up white space.

    A spelling without spaces may be replaced by visible ASCII; nothing, a mark or a `▁` in its place could move a cut.
    """
    if rule.get("type") == "Replace":
        if rule["pattern"] == {"Regex": " {2,}"}:
            return bool(rule["content"] == " ")
        spelled, content = rule["pattern"].get("String", " "), rule["content"]
        return bool(VISIBLE.fullmatch(content) and spelled and not any(map(str.isspace, spelled)))
    return rule.get("type") in ("Precompiled", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")


def _is_bytelevel(model: Model, normalizer: Spec, splitter: Spec) -> bool:
    return (
        isinstance(model, BPE)
        and not model.dropout
        and normalizer.get("type") in (None, "NFC")
        and splitter.get("type") == "ByteLevel"
        and splitter.get("use_regex", True)
    )


STRUCTURES: list[tuple[Structure, Callable[[Model, Spec, Spec], bool]]] = [
    (Structure("wordpiece", keeps_space=False), _is_wordpiece),
    (Structure("metaspace", keeps_space=False), _is_metaspace),
    (Structure("bytelevel", keeps_space=True), _is_bytelevel),
]


def replaced(tokenizer: Tokenizer) -> list[str]:
    """Return the spellings that rules of the normalizer replace."""
    rules = _rules(tokenizer)
    return [str(rule["pattern"].get("String", " ")) for rule in rules if rule.get("type") == "Replace"]


def is_charwise(tokenizer: Tokenizer) -> bool:
    """Tell whether what becomes of a character that is no mark and joins no other never depends on its neighbours.

    Not so where a normal form may compose what another step has made, or where a rule replaces some letters in a row.
    """
    kinds = {str(rule.get("type")) for rule in _rules(tokenizer) if rule.get("pattern") != {"Regex": " {2,}"}}
    return kinds <= {"BertNormalizer", "Precompiled", "Lowercase", "None"}


def _rules(tokenizer: Tokenizer) -> list[Spec]:
    """Return the steps of a normalizer, of which there may be one."""
    normalizer = _spec(tokenizer.normalizer)
    return normalizer.get("normalizers", []) if normalizer.get("type") == "Sequence" else [normalizer]


def is_safe(code: int, tokenizer: Tokenizer, structure: Structure) -> bool:
    """Tell whether a character may stand beside a cut: assigned, no mark, no white space, none once normalized."""
    character = chr(code)
    if not _is_plain(character):  # a lone surrogate, too, which normalizers refuse
        return False
    shown = character if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str(character)
    return is_safe_as(character, shown, structure)


def is_safe_as(character: str, shown: str, structure: Structure) -> bool:
    """Tell whether a character that the normalizer turns into `shown` may stand beside a cut."""
    if not _is_plain(character) or character == "▁":
        return False
    if shown == character:
        return True
    if structure.name == "wordpiece":  # BERT puts ideographs between spaces, which are dropped like any other
        return bool(shown.strip())
    if not shown or shown != shown.strip() or shown[0] == "▁":
        return False
    return _is_plain(shown[0]) and ord(shown[-1]) not in JOINING


def _is_plain(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNPS" and ord(character) not in JOINING
