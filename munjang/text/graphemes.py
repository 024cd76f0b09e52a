"""Graphemes, which a reader takes for one character: letters with marks, jamo syllables, flags, joined emoji."""

import unicodedata

JOINER = 0x200D
# Marks by category; these join although theirs says otherwise: joiners, emoji tags, skin tones, halfwidth voicing
# marks, Thai and Lao am.
JOINING = {0x200C, JOINER, 0xFF9E, 0xFF9F, 0x0E33, 0x0EB3, *range(0x1F3FB, 0x1F400), *range(0xE0020, 0xE0080)}
# Signs that stand before what they belong to, most of them before Arabic numbers
LEADERS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0xD4E, 0x110BD, 0x110CD, 0x111C2, 0x111C3}
LEADERS |= {0x113D1, 0x1193F, 0x11941, 0x11A3A, *range(0x11A84, 0x11A8A), 0x11D46, 0x11F02}
CONTROLS = ("Cc", "Zl", "Zp")
FLAGS = range(0x1F1E6, 0x1F200)  # regional indicators: two make a flag
LEADING = (range(0x1100, 0x1160), range(0xA960, 0xA980))  # conjoining jamo, by their place in a syllable
VOWELS = (range(0x1160, 0x11A8), range(0xD7B0, 0xD7CB))
TRAILING = (range(0x11A8, 0x1200), range(0xD7CB, 0xD800))
SYLLABLES = range(0xAC00, 0xD7A4)


def joins(previous: str, character: str) -> bool:
    """Tell whether a text may not be cut between these two characters. Flags are left to `boundaries`: they count."""
    after, before = ord(character), ord(previous)
    if before in LEADERS:
        return unicodedata.category(character) not in CONTROLS
    if after < 0x300:
        return before == 0x0D and after == 0x0A
    if 0x3400 <= after <= 0x9FFF:  # ideographs: most of a text without spaces
        return False
    if after in SYLLABLES:
        return 0x1100 <= before < 0xAC00 and _any(before, LEADING)
    if unicodedata.category(previous) in CONTROLS:
        return False
    if after in JOINING or unicodedata.category(character)[0] == "M":
        return True
    if before == JOINER or (0xD800 <= before < 0xDC00 <= after < 0xE000):
        return True
    if unicodedata.combining(previous) == 9:  # a virama ties two consonants
        return unicodedata.category(character) == "Lo"
    return _jamo(before, after)


def _jamo(before: int, after: int) -> bool:
    if _any(before, LEADING):
        return _any(after, LEADING) or _any(after, VOWELS)
    if before in SYLLABLES or _any(before, VOWELS):
        open_syllable = before not in SYLLABLES or (before - SYLLABLES.start) % 28 == 0
        return _any(after, TRAILING) or (open_syllable and _any(after, VOWELS))
    return _any(before, TRAILING) and _any(after, TRAILING)


def _any(code: int, ranges: tuple[range, ...]) -> bool:
    return any(code in codes for codes in ranges)


def boundaries(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the places of the graphemes of text[start:end].

    >>> boundaries("e\\u0301각🇰🇷", 0, 5)
    [(0, 2), (2, 3), (3, 5)]
    """
    places, begin, flags = [], start, 0
    for at in range(start + 1, end):
        flags = flags + 1 if ord(text[at - 1]) in FLAGS else 0
        if joins(text[at - 1], text[at]) or (flags % 2 and ord(text[at]) in FLAGS):
            continue
        places.append((begin, at))
        begin = at
    if begin < end:
        places.append((begin, end))
    return places
