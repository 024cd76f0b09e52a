"""Plain words: which are, and that they have the ids that the whole tokenizer gives them."""

import json

import pytest
from tokenizers import AddedToken, Tokenizer, normalizers

from munjang.text import structures
from munjang.text.plain import ALONE, PlainWords
from tests.models import make_tokenizer
from tests.texts import ENGLISH, KOREAN

KINDS = ["wordpiece", "unigram", "bytelevel"]


def plain_of(rust: Tokenizer) -> PlainWords:
    structure = structures.find(rust)
    assert structure is not None
    contents = [token.content for token in rust.get_added_tokens_decoder().values()]
    shown = contents if rust.normalizer is None else [rust.normalizer.normalize_str(content) for content in contents]
    return PlainWords(rust, structure, [*contents, *shown])


def ids_of(rust: Tokenizer, words: list[str]) -> list[list[int]]:
    return [rust.encode(word, add_special_tokens=False).ids for word in words]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [1, 20])
def test_words_have_the_ids_they_have_alone(kind: str, times: int) -> None:
    rust = make_tokenizer(kind)
    plain = plain_of(rust)
    front = "" if plain.gap else " "
    words = [front + word for word in [*ENGLISH, *KOREAN, "co-operate!?", "A.B.C", "ㅋㅋ", "1,000원"] * times]
    words = [word for word in words if plain.is_row(word)]
    assert len(words) > 70 * times
    assert (len(words) > ALONE) is (times > 1)
    found = plain(words)
    assert found is not None
    flat, lengths = found
    ends = [sum(lengths[: place + 1]) for place in range(len(lengths))]
    assert [flat[end - size : end] for end, size in zip(ends, lengths, strict=True)] == ids_of(rust, words)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_texts_in_one_row(kind: str) -> None:
    rust = make_tokenizer(kind)
    plain = plain_of(rust)
    texts = ["the quick fox", "don't jump over 42 dogs!", "the"] * 30
    assert plain.separator
    assert plain.texts(texts) == ids_of(rust, texts)
    assert plain.texts(texts[:1]) == ids_of(rust, texts[:1])
    assert plain.texts(["the fox", f"a {plain.separator} b"]) is None  # no telling where the second one begins


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_plain(kind: str) -> None:
    plain = plain_of(make_tokenizer(kind))
    front = "" if plain.gap else " "
    for word in ("", "a  b", "e\u0301", "\u1100\u1161", "σΣ", "\u200d", "▁", "\ud800", "x" * 65, "ﾞ", "\u00ad", "a\tb"):
        assert not plain.is_row(front + word), word
    assert not plain.is_row(front + "x ")
    assert not any(map(plain.are_plain, ([], [""], [front + "x", ""], ["", front + "x"], [front + "x", "a\tb"])))
    assert plain.are_plain([front + "x", front + "y"])
    assert plain.are_plain([front + "x", "y"]) is (front == "")  # a text's first word has no space
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


def test_a_vocabulary_without_marks_has_no_plain_words() -> None:
    rust = make_tokenizer("unigram")
    spelled = json.loads(rust.to_str())
    spelled["model"]["vocab"] = [
        ["\u2603" if piece == "▁" else piece, score] for piece, score in spelled["model"]["vocab"]
    ]
    assert plain_of(rust).is_row("fox")
    assert not plain_of(Tokenizer.from_str(json.dumps(spelled))).is_row("fox")
