"""Plain spans: which are, and that rows of them have the ids that the whole tokenizer gives them."""

import pytest
from tokenizers import AddedToken, Tokenizer, normalizers

from munjang.text.lookup import structures
from munjang.text.lookup.plain import Plain
from tests.models import make_tokenizer
from tests.texts import ENGLISH, KOREAN

KINDS = ["wordpiece", "unigram", "bytelevel"]


def plain_of(rust: Tokenizer) -> Plain:
    structure = structures.find(rust)
    assert structure is not None
    contents = [token.content for token in rust.get_added_tokens_decoder().values()]
    shown = contents if rust.normalizer is None else [rust.normalizer.normalize_str(content) for content in contents]
    return Plain(rust, structure, [*contents, *shown])


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_has_the_ids_of_the_whole_tokenizer(kind: str) -> None:
    rust = make_tokenizer(kind)
    plain = plain_of(rust)
    front = "" if plain.gap else " "
    words = [front + word for word in [*ENGLISH, *KOREAN, "co-operate!?", "A.B.C", "ㅋㅋ", "1,000원"]]
    words = [word for word in words if plain.is_row(word)]
    assert len(words) > 70
    rows = [*words, plain.gap.join(words), plain.gap.join(words[::-1])]
    assert all(map(plain.is_row, rows))
    assert plain.encode(rows) == [rust.encode(row, add_special_tokens=False).ids for row in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_plain(kind: str) -> None:
    plain = plain_of(make_tokenizer(kind))
    front = "" if plain.gap else " "
    for word in ("", "a  b", "e\u0301", "\u1100\u1161", "σΣ", "\u200d", "▁", "\ud800", "x" * 65, "ﾞ", "\u00ad", "a\tb"):
        assert not plain.is_row(front + word), word
    assert not plain.is_row(front + "x ")
    assert not any(map(plain.are_all_plain, ([], [""], [front + "x", ""], ["", front + "x"], [front + "x", "a\tb"])))
    assert plain.are_all_plain([front + "x", front + "y"])
    assert plain.are_all_plain([front + "x", "y"]) is (front == "")  # a text's first word has no space
    assert plain.is_row(front + "x" * 64)


def test_the_first_letter_of_an_added_token_is_not_plain() -> None:
    rust = make_tokenizer("wordpiece")
    assert plain_of(rust).is_row("Quick")
    rust.add_tokens([AddedToken("Quip", normalized=True)])
    plain = plain_of(rust)
    assert [bool(plain.is_row(word)) for word in ("Quick", "quick", "fox", "[x")] == [False, False, True, False]


def test_what_a_rule_replaces_is_not_plain() -> None:
    rust = make_tokenizer("unigram")
    rust.normalizer = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.NFKC()])
    plain = plain_of(rust)
    assert [bool(plain.is_row(word)) for word in ("a`", "a``b", "fox", "가", "ㅋㅏ")] == [
        False,
        False,
        True,
        True,
        False,
    ]
