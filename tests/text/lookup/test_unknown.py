"""Unknown spans in rows: the ids that each has alone, whatever stands beside it."""

import json
import lzma
import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer as RustTokenizer

from munjang.text.lookup import structures, unknown
from munjang.text.lookup.lookup import SpanLookup
from munjang.text.lookup.spans import SafeCharacters
from munjang.text.lookup.unknown import SPANS_PER_ROW, SpanTokenizer
from munjang.text.tokenizer import Tokenizer
from tests.models import make_tokenizer
from tests.texts import ENGLISH, KOREAN, hostile, mixed

KINDS = ["wordpiece", "unigram", "bytelevel"]
REAL_TEXTS = {"minilm-l6": "en-sentences", "e5-small": "ko-reviews"}


def make(rust: RustTokenizer) -> SpanTokenizer:
    structure = structures.find(rust)
    assert structure is not None
    return SpanTokenizer(rust, SafeCharacters(rust, structure))


@pytest.fixture(params=KINDS)
def tokenize(request: pytest.FixtureRequest) -> SpanTokenizer:
    return make(make_tokenizer(request.param))


def with_front(tokenize: SpanTokenizer, words: list[str]) -> list[str]:
    return [f" {word}" for word in words] if tokenize.keeps_space else words


def to_lists(ids_of: dict[str, bytes]) -> dict[str, list[int]]:
    return {span: np.frombuffer(ids, np.int32).tolist() for span, ids in ids_of.items()}


def naive(tokenize: SpanTokenizer, spans: list[str]) -> dict[str, list[int]]:
    return {span: tokenize.tokenizer.encode(span, add_special_tokens=False).ids for span in spans}


@pytest.mark.parametrize("is_plain", [True, False])
def test_spans_in_rows_have_the_ids_they_have_alone(tokenize: SpanTokenizer, is_plain: bool) -> None:
    words = [*ENGLISH, *KOREAN, "co-operate!?", "A.B.C", "ㅋㅋ", "1,000원"]
    spans = list(dict.fromkeys(with_front(tokenize, words)))
    spans = [span for span in spans if tokenize.plain.is_row(span)] if is_plain else spans
    assert len(spans) > 2 * SPANS_PER_ROW
    in_rows: dict[str, bytes] = {}
    encode = tokenize.plain.encode if is_plain else tokenize._encode
    left = tokenize._in_rows(spans, SPANS_PER_ROW, encode, in_rows)
    assert len(left) < len(spans) // 2  # by far most went in rows, or this test shows nothing
    assert to_lists(in_rows) == naive(tokenize, [span for span in spans if span not in left])
    assert to_lists(tokenize(spans)) == naive(tokenize, spans)
    many = with_front(tokenize, [f"{word}{number}" for word in words for number in range(20)])
    assert to_lists(tokenize(many)) == naive(tokenize, many)


def test_a_span_with_a_mark_of_its_own(tokenize: SpanTokenizer) -> None:
    """Its row is taken span by span, the others are not."""
    assert bool(tokenize.separator) is (not tokenize.mark)
    spans = with_front(tokenize, [f"{word}{number}" for word in ("the", "fox") for number in range(SPANS_PER_ROW)])
    spans[3] = with_front(tokenize, [tokenize.separator or "the  fox"])[0]  # two words in one span
    in_rows: dict[str, bytes] = {}
    left = tokenize._in_rows(spans, SPANS_PER_ROW, tokenize._encode, in_rows)
    assert (left, list(in_rows)) == (spans[:SPANS_PER_ROW], spans[SPANS_PER_ROW:])
    assert to_lists(tokenize(spans)) == naive(tokenize, spans)


def test_a_span_with_an_added_token_is_left_out(tokenize: SpanTokenizer) -> None:
    mask = next(token.content for token in tokenize.added.values() if "mask" in token.content.lower())
    spans = with_front(tokenize, ["the", f"x{mask}y", "fox", mask, "\u2603"])  # the last one is unknown
    expected = naive(tokenize, [spans[0], spans[2], spans[4]])
    assert to_lists(tokenize(spans)) == expected
    assert [span for span in spans if span in tokenize(["the", *spans])] == list(expected)  # one that joins no other


@pytest.mark.parametrize("kind", ["wordpiece", "bytelevel"])
def test_without_a_separator(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown, "SEPARATORS", "")
    rust, texts = make_tokenizer(kind), [*mixed(30), *hostile(300, seed=5)]
    alone = Tokenizer(rust)
    assert isinstance(alone.tokenize_bodies, SpanLookup)
    assert alone.tokenize_bodies.tokenize.can_join is (kind == "bytelevel")
    monkeypatch.undo()
    assert np.array_equal(alone(texts).ids, Tokenizer(rust)(texts).ids)


def test_ids_with_gaps_between_them(tokenize: SpanTokenizer) -> None:
    spans = with_front(tokenize, [*ENGLISH])
    tokenize.kinds = tokenize.kinds[:5]  # as if the vocabulary were said to be smaller than its largest id
    in_rows: dict[str, bytes] = {}
    tokenize._in_rows(spans, SPANS_PER_ROW, tokenize._encode, in_rows)
    assert to_lists(in_rows).items() <= naive(tokenize, spans).items()
    assert to_lists(tokenize(spans)) == naive(tokenize, spans)


def test_a_vocabulary_without_marks_is_taken_span_by_span() -> None:
    spelled = json.loads(make_tokenizer("unigram").to_str())
    spelled["model"]["vocab"] = [
        ["\u2603" if piece == "▁" else piece, score] for piece, score in spelled["model"]["vocab"]
    ]
    rust = RustTokenizer.from_str(json.dumps(spelled))
    tokenize = make(rust)
    assert make(make_tokenizer("unigram")).can_join
    assert not tokenize.can_join
    assert to_lists(tokenize([*ENGLISH])) == naive(tokenize, [*ENGLISH])


def assert_cold_is_warm(path: Path, texts: list[str]) -> None:
    """Cold in one batch, cold in many small ones, and warm: the ids of `tokenizers`, and every word learned once."""
    rust = RustTokenizer.from_file(str(path))
    tokenizer = Tokenizer(rust)
    lookup = tokenizer.tokenize_bodies
    assert isinstance(lookup, SpanLookup)
    expected = np.concatenate([np.array(encoding.ids, np.int32) for encoding in rust.encode_batch(texts)])
    assert np.array_equal(tokenizer(texts).ids, expected)
    size = lookup.table.num_entries
    assert size > 100
    assert np.array_equal(tokenizer(texts).ids, expected)
    assert lookup.table.num_entries == size
    other = Tokenizer(rust)  # whose first small calls are not looked up
    parts = [other(texts[start : start + 50]).ids for start in range(0, len(texts), 50)]
    assert np.array_equal(np.concatenate(parts), expected)


def test_real_words_cold_and_warm(minilm: Path) -> None:
    """The vocabulary's own words in random order, with punctuation as in English."""
    vocab = RustTokenizer.from_file(str(minilm / "tokenizer.json")).get_vocab()
    words = sorted(word for word in vocab if word.isalpha())
    draw = random.Random(0)
    ends = ["", "", "", "", ",", ".", "'s", "-", "‡", " ‡", "?!"]
    texts = [" ".join(draw.choice(words) + draw.choice(ends) for _ in range(draw.randint(1, 20))) for _ in range(500)]
    assert_cold_is_warm(minilm / "tokenizer.json", texts)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(REAL_TEXTS))
def test_real_texts_cold_and_warm(real_models: Path, data_folder: Path, name: str) -> None:
    with lzma.open(data_folder / "text" / f"{REAL_TEXTS[name]}.txt.xz", "rt", encoding="utf-8") as file:
        texts = [line.rstrip("\n") for line in islice(file, 20_000)]
    assert_cold_is_warm(real_models / name / "tokenizer.json", texts)
