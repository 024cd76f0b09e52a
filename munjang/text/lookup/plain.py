"""Plain spans: those that need none of the steps in front of a tokenizer's model.

`tokenizers` spends up to half of its time on normal forms, added tokens and on turning spaces into `▁`: without this
file a thousand new English sentences take 1.2 times as long, new sentences that come one by one 1.3 to 1.6 times.
A row of spans needs none of that if each character comes out of the normalizer in a way that its neighbours don't
change, which a table then does for all at once: the ranges below hold no marks, no jamo and nothing else that joins a
neighbour, and no character counts that begins an added token or what a rule replaces. Such rows go to a second
tokenizer, which has the model of the first and no other steps; the model is shared, not copied.
"""

import re
from collections.abc import Iterable

from tokenizers import Tokenizer, pre_tokenizers

from munjang.text.lookup import structures
from munjang.text.lookup.spans import MAX_SPAN_CHARACTERS

SMALL_RANGES = (  # asked for character by character
    *((0x21, 0x7E), (0xA1, 0x17F), (0x400, 0x481), (0x48A, 0x52F)),  # ASCII, Latin, Cyrillic
    *((0x2010, 0x2027), (0x203B, 0x203B), (0x25A0, 0x266F)),  # punctuation, stars and hearts
    *((0x3001, 0x3003), (0x3008, 0x3011), (0x3131, 0x318E), (0xFF01, 0xFF5E)),  # quotes, single jamo (ㅋㅋ), wide ASCII
)
LARGE_RANGES = ((0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3))  # plain if left as they are


class Plain:
    """Tells plain rows of spans from others and tokenizes them; byte-level spans have their space in front."""

    def __init__(self, tokenizer: Tokenizer, structure: structures.Structure, added: Iterable[str]) -> None:
        self.tokenizer, self.structure = tokenizer, structure
        self.normalize = (lambda text: text) if tokenizer.normalizer is None else tokenizer.normalizer.normalize_str
        firsts = {text[0] for text in (*added, *structures.replaced(tokenizer)) if text}
        self.shown = self._shown(firsts | {case for first in firsts for case in first.lower() + first.upper()})
        self.changed = {ord(character): other for character, other in self.shown.items() if other != character}
        changed = re.escape("".join(map(chr, self.changed)))
        self.find_changed = re.compile(f"[{changed}]+") if changed else None
        self.only_lowers_ascii = all(self.shown[letter] == letter.lower() for letter in self.shown if letter.isascii())
        plain = re.escape("".join(self.shown)) + self._unchanged_ranges(firsts)
        span = f"[{plain}]{{1,{MAX_SPAN_CHARACTERS}}}+"  # possessive: nothing to be remembered of a long row
        row = f"(?: {span})++" if structure.keeps_space else f"{span}(?: {span})*+"
        self.is_row = re.compile(row if plain else "(?!)").fullmatch  # of one span or more
        self.gap = "" if structure.keeps_space else " "  # between the spans of such a row
        self.model = Tokenizer(tokenizer.model)
        if structure.name != "metaspace":
            self.model.pre_tokenizer = tokenizer.pre_tokenizer
        else:
            self.model.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="never")

    def are_all_plain(self, spans: list[str]) -> bool:
        """Tell whether all of these are plain, by one look at them in a row."""
        row = self.gap.join(spans)
        return self.is_row(row) is not None and row.count(" ") == len(spans) - len(self.gap)

    def encode(self, rows: list[str]) -> list[list[int]]:
        """Return the ids of plain rows."""
        rows = [self._normalized(row) for row in rows]
        if self.structure.name == "metaspace":
            rows = ["▁" + row.replace(" ", "▁") for row in rows]
        return [encoding.ids for encoding in self.model.encode_batch_fast(rows, add_special_tokens=False)]

    def _normalized(self, row: str) -> str:
        if row.isascii() and self.only_lowers_ascii:
            return row.lower()
        if self.find_changed is None:
            return row
        return self.find_changed.sub(lambda match: match[0].translate(self.changed), row)

    def _shown(self, excluded: set[str]) -> dict[str, str]:
        """Return what the normalizer makes of the plain characters among the small ranges."""
        is_charwise, plain = structures.is_charwise(self.tokenizer), {}
        for character in (chr(code) for first, last in SMALL_RANGES for code in range(first, last + 1)):
            shown = self.normalize(character)
            may_change = is_charwise or shown == character or (shown == character.lower() and character.isascii())
            is_whole = not excluded.intersection(character + shown) and not any(map(str.isspace, shown))
            if may_change and is_whole and structures.is_safe_as(character, shown, self.structure) and "▁" not in shown:
                plain[character] = shown
        return plain

    def _unchanged_ranges(self, excluded: set[str]) -> str:
        """Return the large ranges that the normalizer leaves as they are, as a regular expression spells them."""
        ranges = ""
        for first, last in LARGE_RANGES:
            characters = "".join(map(chr, range(first, last + 1)))
            # the first one says it mostly
            is_same = self.normalize(characters[0]) == characters[0] and self.normalize(characters) == characters
            if is_same and excluded.isdisjoint(characters):
                ranges += f"{characters[0]}-{characters[-1]}"
        return ranges
