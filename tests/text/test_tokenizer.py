"""Ids identical to the `tokenizers` library, whatever the text, alone and in a batch, warm and cold."""

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import pre_tokenizers, processors

from munjang.errors import CheckpointError, InputError
from munjang.text.lookup import lookup
from munjang.text.tokenizer import Tokenizer, Tokens, longest_first
from tests.models import make_tokenizer
from tests.texts import HOSTILE, PIECES, hostile, mixed

KINDS = ["wordpiece", "unigram", "bytelevel"]
TEXT = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=10).map("".join)


def clean(text: str) -> str:
    """What `tokenizers` takes: no lone surrogates."""
    return "".join("\ufffd" if 0xD800 <= ord(character) < 0xE000 else character for character in text)


def naive(rust: RustTokenizer, texts: list[str]) -> list[list[int]]:
    return [rust.encode(clean(text)).ids for text in texts]


def split(tokens: Tokens) -> list[list[int]]:
    assert len(tokens.ids) == tokens.lengths.sum()
    return [part.tolist() for part in np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])]


@pytest.fixture(scope="module", autouse=True)
def always_looked_up() -> Iterator[None]:
    """Small calls too, which would mostly go straight to `tokenizers` as long as their words are new."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "MAX_FEW_CHARACTERS", 0)
        yield


@cache
def spelled(kind: str) -> str:
    return make_tokenizer(kind).to_str()  # training breaks ties at random: one for all tests


def fresh(kind: str) -> RustTokenizer:
    return RustTokenizer.from_str(spelled(kind))


@cache
def warm(kind: str) -> Tokenizer:
    """One tokenizer for all examples: its table fills up as they come."""
    return Tokenizer(fresh(kind))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=150)
@given(texts=st.lists(TEXT, min_size=1, max_size=6))
def test_any_text(kind: str, texts: list[str]) -> None:
    tokenizer = warm(kind)
    expected = naive(tokenizer.rust, texts)
    assert split(tokenizer(texts)) == expected
    assert [split(tokenizer([text]))[0] for text in texts] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_texts_cold_warm_alone_and_reversed(kind: str) -> None:
    tokenizer = Tokenizer(fresh(kind))
    assert tokenizer.path.startswith("look-up")
    texts = [*HOSTILE, *mixed(20), *hostile(2000, seed=7)]
    expected = naive(tokenizer.rust, texts)
    assert split(tokenizer(texts)) == expected
    assert split(tokenizer(texts)) == expected
    assert split(tokenizer(texts[::-1])) == expected[::-1]
    for text, ids in zip(texts[:200], expected, strict=False):
        assert split(tokenizer([text])) == [ids]
        assert split(Tokenizer(tokenizer.rust)([text])) == [ids] if len(text) < 20 else True


def assert_like_tokenizers(path: Path, texts: list[str]) -> None:
    rust = RustTokenizer.from_file(str(path))
    tokenizer = Tokenizer(rust)  # which takes their padding and truncation off
    assert tokenizer.path.startswith("look-up")
    expected = naive(rust, texts)
    assert split(tokenizer(texts)) == expected
    assert split(tokenizer(texts[::-1])) == expected[::-1]


def test_the_real_minilm(minilm: Path) -> None:
    assert_like_tokenizers(minilm / "tokenizer.json", [*HOSTILE, *mixed(100), *hostile(1000)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["minilm-l6", "mpnet-base", "e5-small"])
def test_real_tokenizers(real_models: Path, name: str) -> None:
    assert_like_tokenizers(real_models / name / "tokenizer.json", [*HOSTILE, *mixed(500), *hostile(30000, seed=3)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_one_very_long_text(kind: str, length: int) -> None:
    tokenizer = warm(kind)
    for text in ("word " * (length // 5), "x" * length, "가나다 " * (length // 4)):
        flat, lengths = tokenizer.bodies([text])
        assert flat.tolist() == tokenizer.rust.encode(text, add_special_tokens=False).ids
        assert lengths.tolist() == [len(flat)]


@pytest.mark.parametrize("kind", [*KINDS, "unknown"])
@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_a_few_texts_at_a_time(kind: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many characters there are, only so many are on the way at once."""
    rust = fresh("wordpiece" if kind == "unknown" else kind)
    if kind == "unknown":
        rust.pre_tokenizer = pre_tokenizers.Whitespace()
    whole, texts = Tokenizer(rust), ["", "", *mixed(40, longest=20), "", *HOSTILE[:20], "x" * 300, "", ""]
    assert (whole.path == "tokenizers") is (kind == "unknown")
    expected = split(whole(texts))
    monkeypatch.setattr(lookup, "MAX_CHARACTERS_AT_ONCE", size)
    groups = list(lookup.groups(texts))
    assert [text for group in groups for text in group] == texts
    assert all(sum(map(len, group[:-1])) < 2 * size for group in groups)
    assert split(Tokenizer(rust)(texts)) == expected
    assert split(Tokenizer(rust)(["", ""])) == split(whole(["", ""]))


def test_strings_of_numpy_are_strings() -> None:
    texts = [np.str_("the fox"), np.str_("나는 오늘")]
    assert split(warm("wordpiece")(texts)) == naive(warm("wordpiece").rust, [str(text) for text in texts])


def test_no_texts() -> None:
    for kind in KINDS:
        tokens = warm(kind)([])
        assert (len(tokens.ids), len(tokens.lengths), len(tokens.cut_rows)) == (0, 0, 0)
        assert len(warm(kind).pairs([], []).ids) == 0


# Special tokens


def test_template_of_bert() -> None:
    tokenizer = warm("wordpiece")
    cls, sep = tokenizer.rust.token_to_id("[CLS]"), tokenizer.rust.token_to_id("[SEP]")
    assert [ids.tolist() for ids, _ in tokenizer.single.parts] == [[cls], [sep]]
    assert [ids.tolist() for ids, _ in tokenizer.pair.parts] == [[cls], [sep], [sep]]
    assert [types.tolist() for _, types in tokenizer.pair.parts] == [[0], [0], [1]]
    assert tokenizer.pair.types == (0, 1)
    assert (tokenizer.single.num_special, tokenizer.pair.num_special) == (2, 3)


def test_template_of_roberta() -> None:
    tokenizer = warm("bytelevel")
    start, end = tokenizer.rust.token_to_id("<s>"), tokenizer.rust.token_to_id("</s>")
    assert [ids.tolist() for ids, _ in tokenizer.single.parts] == [[start], [end]]
    assert [ids.tolist() for ids, _ in tokenizer.pair.parts] == [[start], [end, end], [end]]
    assert tokenizer.pairs(["a"], ["b"]).types is None  # one segment: none are passed


def test_no_template() -> None:
    rust = fresh("wordpiece")
    rust.post_processor = None
    tokenizer, bare = Tokenizer(rust), Tokenizer(fresh("wordpiece"), has_special=False)
    for each in (tokenizer, bare):
        assert (each.single.num_special, each.pair.num_special) == (0, 0)
        assert split(each(["the fox", ""])) == [rust.encode("the fox", add_special_tokens=False).ids, []]


def test_only_an_end() -> None:
    """Decoders put one token behind a text, none in front (Qwen3-Embedding)."""
    rust = fresh("bytelevel")
    rust.post_processor = processors.TemplateProcessing("$A </s>", "$A $B </s>", [("</s>", 2)])
    tokenizer = Tokenizer(rust, max_length=4)
    assert split(tokenizer(["a b c d e f"]))[0][-1] == 2
    assert split(tokenizer([""])) == [[2]]
    assert tokenizer.prompt_length("a b") == 2


def test_a_template_that_turns_the_texts_around_is_refused() -> None:
    rust = fresh("bytelevel")
    rust.post_processor = processors.TemplateProcessing("$A </s>", "$B </s> $A </s>", [("</s>", 2)])
    with pytest.raises(CheckpointError, match="order"):
        Tokenizer(rust)


def test_a_tokenizer_that_knows_nothing_is_refused() -> None:
    from tokenizers import models

    with pytest.raises(CheckpointError, match="gives no tokens for any of"):
        Tokenizer(RustTokenizer(models.WordLevel({"zzz": 0}, unk_token=None)))


# Truncation


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [3, 4, 7, 20])
def test_truncation(kind: str, limit: int) -> None:
    tokenizer, rust = Tokenizer(fresh(kind), limit), fresh(kind)
    texts = [*mixed(40), *HOSTILE]
    long = [len(ids) > limit for ids in naive(rust, texts)]
    rust.enable_truncation(limit)
    tokens = tokenizer(texts)
    assert split(tokens) == naive(rust, texts)
    assert tokens.cut_rows.tolist() == long


def test_longest_first_for_all_small_lengths() -> None:
    rust = fresh("wordpiece")
    a, b = np.meshgrid(np.arange(9), np.arange(9))
    lengths_a, lengths_b = a.ravel().astype(np.int64), b.ravel().astype(np.int64)
    for limit in range(3, 20):
        room = limit - 3
        rust.enable_truncation(limit, strategy="longest_first")
        kept_a, kept_b = longest_first(lengths_a, lengths_b, room)
        for row, (one, two) in enumerate(zip(lengths_a.tolist(), lengths_b.tolist(), strict=True)):
            owners = rust.encode("龘" * one, "龘" * two).sequence_ids  # one unknown piece each
            assert (owners.count(0), owners.count(1)) == (kept_a[row], kept_b[row]), (one, two, limit)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs(kind: str) -> None:
    tokenizer, rust = Tokenizer(fresh(kind), 24), fresh(kind)
    first, second = [*HOSTILE, *mixed(40)], [*mixed(40, seed=1), *HOSTILE[::-1]]
    rust.enable_truncation(24)
    expected = [rust.encode(clean(a), clean(b)) for a, b in zip(first, second, strict=True)]
    tokens = tokenizer.pairs(first, second)
    assert split(tokens) == [found.ids for found in expected]
    types = [0] * len(tokens.ids) if tokens.types is None else tokens.types.tolist()
    assert types == [kind for found in expected for kind in found.type_ids]
    rust.no_truncation()
    long = [len(rust.encode(clean(a), clean(b)).ids) > 24 for a, b in zip(first, second, strict=True)]
    assert tokens.cut_rows.tolist() == long


def test_segments_are_left_out_where_the_model_has_none() -> None:
    tokenizer = Tokenizer(fresh("wordpiece"))
    assert tokenizer.pairs(["a"], ["b"]).types is not None
    tokenizer.has_types = False
    assert tokenizer.pairs(["a"], ["b"]).types is None


def test_a_dropped_id_is_in_no_text() -> None:
    tokenizer = Tokenizer(fresh("wordpiece"), has_special=False)
    unknown = tokenizer.rust.token_to_id("[UNK]")
    texts = ["the 龘 fox", "龘", "", "fox"]
    expected = [[token for token in ids if token != unknown] for ids in split(tokenizer(texts))]
    assert any(unknown in ids for ids in split(tokenizer(texts)))
    tokenizer.dropped = unknown
    assert split(tokenizer(texts)) == expected


# Windows over long texts


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(3, 12), st.integers(0, 6))
@settings(deadline=None)
def test_windows_cover_every_text(counts: list[int], limit: int, head: int) -> None:
    tokenizer = warm("wordpiece")
    words = "the fox quick brown over lazy dogs while how fast light glass".split()  # noqa: SIM905
    random_ = random.Random(sum(counts))
    texts = [" ".join(random_.choices(words, k=count)) for count in counts]
    flat, lengths = tokenizer.bodies(texts)
    bodies = [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]
    limited = Tokenizer(tokenizer.rust, limit)
    if head >= limit - 2:
        with pytest.raises(InputError, match="leaves no room"):
            limited.windows(texts, head)
        return
    tokens, text_of = limited.windows(texts, head)
    cls, sep = (int(ids[0]) for ids, _ in limited.single.parts)
    for row, body in enumerate(bodies):
        pieces = [piece for piece, of in zip(split(tokens), text_of.tolist(), strict=True) if of == row]
        assert all(piece[0] == cls and piece[-1] == sep and len(piece) <= limit for piece in pieces)
        assert all(piece[1:-1][:head] == body[:head] for piece in pieces)  # the prompt, every time
        assert body[:head] + [token for piece in pieces for token in piece[1:-1][head:]] == body
        assert tokens.cut_rows[row] == (len(pieces) > 1)
        assert all(len(piece) == limit for piece in pieces[:-1])  # only the last one may be short


def test_windows_without_a_limit_are_the_texts() -> None:
    tokenizer = warm("bytelevel")
    tokens, text_of = tokenizer.windows(["a b", ""], 0)
    assert split(tokens) == split(tokenizer(["a b", ""]))
    assert text_of.tolist() == [0, 1]
    assert len(tokens.cut_rows) == 2


def test_saved_and_loaded(tmp_path: Path) -> None:
    tokenizer = warm("unigram")
    tokenizer.save(tmp_path)
    again = Tokenizer.load(tmp_path, {}, 20)
    assert again.max_length == 20
    assert again.vocab_size == tokenizer.vocab_size == tokenizer.rust.get_vocab_size()
    assert split(again(["the fox"])) == split(tokenizer(["the fox"]))
