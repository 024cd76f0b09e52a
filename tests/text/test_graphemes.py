import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from munjang.text.graphemes import boundaries

PIECES = [
    "a",
    "가",
    "ᄀ",
    "ᅡ",
    "ᆨ",
    "각",
    "\u0301",
    "\u200d",
    "👩",
    "🏽",
    "🇰",
    "🇷",
    "क",
    "्",
    "ำ",
    "ก",
    "中",
    " ",
    "\r",
    "\n",
]
PIECES += ["\u0600", "1", "\U000e0067", "🏴", "ﾞ", "\u2028", "\ufe0f", "\ud83d", "\ude00"]


@pytest.mark.parametrize(
    "whole",
    [
        "e\u0301",
        "\u1100\u1161\u11a8",
        "🇰🇷",
        "👩‍👩‍👧‍👦",
        "👍🏽",
        "\r\n",
        "กำ",
        "क्ष",
        "\ud83d\ude00",
        "가\u11a8",
        "\u06001",
    ],
)
def test_is_one_character_to_a_reader(whole: str) -> None:
    assert boundaries(f"x{whole}x", 0, len(whole) + 2) == [
        (0, 1),
        (1, len(whole) + 1),
        (len(whole) + 1, len(whole) + 2),
    ]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=12))
@example("🇰🇷🇰🇷🇰")
def test_never_cuts_what_unicode_keeps_together(text: str) -> None:
    found = boundaries(text, 0, len(text))
    assert "".join(text[start:end] for start, end in found) == text
    assert {end for _, end in found} <= {match.end() for match in regex.finditer(r"\X", text)}
