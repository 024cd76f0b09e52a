"""Beginnings and ends of texts by a number of tokens."""

import pytest

from munjang.text.tokenizer import Tokenizer
from munjang.text.trim import trimmed
from tests.models import make_tokenizer
from tests.texts import HOSTILE, KOREAN

TEXTS = ["the quick brown fox jumps over the lazy dog", KOREAN[0], "unbelievable " * 5, "a", "", *HOSTILE[:20]]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bytelevel"])
@pytest.mark.parametrize("keeps_end", [False, True])
def test_no_more_tokens_than_asked_for(kind: str, keeps_end: bool) -> None:
    tokenizer = Tokenizer(make_tokenizer(kind))
    for text in TEXTS:
        if any(0xD800 <= ord(character) < 0xE000 for character in text):
            continue  # the server's bodies hold none
        num_tokens = int(tokenizer.bodies([text])[1][0])
        assert trimmed(tokenizer, text, max(num_tokens, 1), keeps_end) == text
        for size in (0, 1, 3, num_tokens - 1):
            if not 0 <= size < num_tokens:
                continue
            cut = trimmed(tokenizer, text, size, keeps_end)
            assert tokenizer.bodies([cut])[1][0] <= size
            assert text.endswith(cut) if keeps_end else text.startswith(cut)
            assert len(cut) < len(text)


def test_whole_words_are_kept() -> None:
    tokenizer = Tokenizer(make_tokenizer("wordpiece"))
    text = "the the the the dog"
    size = int(tokenizer.bodies(["the the"])[1][0])
    assert trimmed(tokenizer, text, size).strip() == "the the"
    assert trimmed(tokenizer, text, int(tokenizer.bodies(["the dog"])[1][0]), keeps_end=True).strip() == "the dog"
