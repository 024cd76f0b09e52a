"""The list of structures: what is on it is exact, and what is off it would not be."""

from collections.abc import Callable

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

from munjang.text.lookup import structures
from munjang.text.lookup.lookup import SpanLookup, encode_whole
from tests.models import make_tokenizer
from tests.texts import HOSTILE, hostile, mixed

Change = Callable[[Tokenizer], object]


def normalizer(*steps: object) -> Change:
    return lambda rust: setattr(rust, "normalizer", normalizers.Sequence(list(steps)) if len(steps) > 1 else steps[0])


def splitter(step: object) -> Change:
    return lambda rust: setattr(rust, "pre_tokenizer", step)


def added(*contents: str, **flags: bool) -> Change:
    return lambda rust: rust.add_tokens([AddedToken(content, **flags) for content in contents])


def metaspace(scheme: str, is_split_first: bool = False) -> Change:
    step = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    split = pre_tokenizers.WhitespaceSplit()
    return splitter(pre_tokenizers.Sequence([split, step]) if is_split_first else step)


def bert(**flags: bool) -> Change:
    return normalizer(normalizers.BertNormalizer(**flags))


NFKC, LOWER = normalizers.NFKC(), normalizers.Lowercase()
CLOSE_UP = normalizers.Replace(Regex(" {2,}"), " ")
ALBERT = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD()]
WORDS = ("fox", "É", "ㅏ", "a.", "ﬁx", "Σ", "가각")
ALLOWED: dict[str, tuple[str, Change]] = {
    "plain wordpiece": ("wordpiece", bert()),
    "cased, accents kept": ("wordpiece", bert(lowercase=False, strip_accents=False, handle_chinese_chars=False)),
    "nothing cleaned": ("wordpiece", bert(clean_text=False)),
    "no normalizer": ("wordpiece", lambda rust: setattr(rust, "normalizer", None)),
    "added words": ("wordpiece", added(*WORDS)),
    "added words, eating spaces": ("wordpiece", added(*WORDS, lstrip=True, rstrip=True)),
    "added whole words": ("wordpiece", added(*WORDS, single_word=True)),
    "added to the normalized text": ("wordpiece", added(*WORDS, normalized=True)),
    "prefix always": ("unigram", metaspace("always")),
    "prefix first": ("unigram", metaspace("first")),
    "split, then prefix always": ("unigram", metaspace("always", is_split_first=True)),
    "NFC": ("unigram", normalizer(normalizers.NFC())),
    "NFD": ("unigram", normalizer(normalizers.NFD())),
    "albert": ("unigram", normalizer(*ALBERT, normalizers.StripAccents(), LOWER)),
    "closed up first": ("unigram", normalizer(CLOSE_UP, LOWER, NFKC)),
    "unigram, added words": ("unigram", added(*WORDS, lstrip=True, normalized=True)),
    "no prefix space": ("bytelevel", splitter(pre_tokenizers.ByteLevel(add_prefix_space=False))),
    "prefix space": ("bytelevel", splitter(pre_tokenizers.ByteLevel(add_prefix_space=True, trim_offsets=False))),
    "byte level, NFC": ("bytelevel", normalizer(normalizers.NFC())),
    "byte level, added words": ("bytelevel", added(*WORDS, rstrip=True)),
    "byte level, runs of spaces added": ("bytelevel", added("  ", "   ", normalized=True)),  # as ModernBERT has them
}
# each with a text that the cut would get wrong, so that the refusal is one that is needed
REFUSED: dict[str, tuple[str, Change, str]] = {
    "added token with a space": ("wordpiece", added("quick brown"), "the quick brown fox"),
    "added token that normalizes to one": ("wordpiece", added("quick\tbrown", normalized=True), "the quick brown fox"),
    "added token between two cuts": ("wordpiece", added("  ", normalized=True), "the 中 fox"),
    "no prefix": ("unigram", metaspace("never"), "the fox"),
    "split, then prefix first": ("unigram", metaspace("first", is_split_first=True), "the fox"),
    "replaced by nothing": ("unigram", normalizer(normalizers.Replace("fox", ""), NFKC), "fox fox"),
    "replaced by a prefix": ("unigram", normalizer(normalizers.Replace("fox", "▁"), NFKC), "fox fox"),
    "replaced with a space": ("unigram", normalizer(normalizers.Replace("e f", "xx"), NFKC), "the fox"),
    "added no-break space": ("unigram", added("the\u00a0fox", normalized=True), "in the fox"),
    "prefix not split off": (
        "unigram",
        splitter(pre_tokenizers.Metaspace(split=False)),
        "",  # it could only differ with a vocabulary whose pieces span words
    ),
    "no pattern": (
        "bytelevel",
        splitter(pre_tokenizers.ByteLevel(use_regex=False, add_prefix_space=False)),
        "",  # the same
    ),
}


def changed(kind: str, change: Change) -> Tokenizer:
    rust = make_tokenizer(kind)
    change(rust)
    return rust


def ids(found: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    flat, lengths = found
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_on_the_list_is_exact(name: str) -> None:
    rust = changed(*ALLOWED[name])
    structure = structures.find(rust)
    assert structure is not None
    texts = [*HOSTILE, *hostile(1500), *mixed(30)]
    assert ids(SpanLookup(rust, structure).look_up(texts)) == ids(encode_whole(rust, texts))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_off_the_list_would_be_wrong(name: str) -> None:
    kind, change, text = REFUSED[name]
    rust = changed(kind, change)
    assert structures.find(rust) is None
    if text:
        usual = structures.find(make_tokenizer(kind))
        assert usual is not None
        assert ids(SpanLookup(rust, usual).look_up([text])) != ids(encode_whole(rust, [text]))


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bytelevel"])
def test_bpe_with_dropout_and_unknown_steps_are_refused(kind: str) -> None:
    for change in (
        splitter(pre_tokenizers.Whitespace()),
        normalizer(normalizers.Strip()),
        normalizer(normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()])),
        normalizer(normalizers.Replace(Regex("[aeiou] "), "x")),
        normalizer(normalizers.Prepend("▁")),
    ):
        assert structures.find(changed(kind, change)) is None
    rust = make_tokenizer("bytelevel")
    rust.model.dropout = 0.1
    assert structures.find(rust) is None


def beside_a_cut(codes: range) -> list[str]:
    """Every character of a range behind a space, in front of one, and between two."""
    found = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    return [text for character in found for text in (f"ab {character}b", f"b{character} ab", f"b {character} ab")]


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bytelevel"])
@pytest.mark.parametrize(
    "codes",
    [
        range(0x1200),  # Latin to Hangul jamo: almost every rule has its cases here
        pytest.param(range(0x1200, 0x20000), marks=pytest.mark.slow),
        range(0xE0000, 0xE0200),  # tags
    ],
    ids=str,
)
def test_every_character_beside_a_cut(kind: str, codes: range) -> None:
    rust = make_tokenizer(kind)
    structure = structures.find(rust)
    assert structure is not None
    texts = beside_a_cut(codes)
    ours, theirs = SpanLookup(rust, structure).look_up(texts), encode_whole(rust, texts)
    assert np.array_equal(ours[1], theirs[1])
    assert np.array_equal(ours[0], theirs[0])


def test_what_joins_with_a_space_is_not_safe() -> None:
    rust = make_tokenizer("unigram")
    structure = structures.find(rust)
    assert structure is not None
    for character in "\u0301\u200d\u20dd\ufe0f🏽ำﾞൎ\u0600 \u00a0\t▁¨\U000e0041\u0378":
        assert not structures.is_safe(ord(character), rust, structure), ascii(character)
    for character in "a가中!½é\u1100😀🇰":
        assert structures.is_safe(ord(character), rust, structure), ascii(character)
