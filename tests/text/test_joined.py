"""New chunks in rows: the ids that each has alone, whatever stands beside it."""

import lzma
import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer as RustTokenizer

from munjang.text import joined, structures
from munjang.text.joined import ROW, WHOLE, ChunkTokenizer
from munjang.text.lookup import keys
from munjang.text.tokenizer import Tokenizer
from tests.models import make_tokenizer
from tests.texts import ENGLISH, KOREAN, hostile, mixed

KINDS = ["wordpiece", "unigram", "bytelevel"]
REAL_TEXTS = {"minilm-l6": "en-sentences", "e5-small": "ko-reviews"}


@pytest.fixture(params=KINDS)
def chunk_tokenizer(request: pytest.FixtureRequest) -> ChunkTokenizer:
    rust = make_tokenizer(request.param)
    structure = structures.find(rust)
    assert structure is not None
    return ChunkTokenizer(rust, structure)


def ids_of(tokenizer: ChunkTokenizer, chunks: list[str], joins: np.ndarray) -> list[list[int]]:
    """What it says of every chunk, in the order of the chunks; [WHOLE] for those it marks."""
    order, flat, lengths, counts = tokenizer(chunks, joins)
    assert sorted(order.tolist()) == list(range(len(chunks)))
    found: list[list[int]] = [[]] * len(chunks)
    for place, ids, count in zip(order.tolist(), np.split(flat, np.cumsum(lengths)[:-1]), counts, strict=True):
        found[place] = [WHOLE] if count == WHOLE else ids.tolist()
    return found


def naive(tokenizer: ChunkTokenizer, chunks: list[str]) -> list[list[int]]:
    return [tokenizer.tokenizer.encode(chunk, add_special_tokens=False).ids for chunk in chunks]


def test_chunks_in_rows_have_the_ids_they_have_alone(chunk_tokenizer: ChunkTokenizer) -> None:
    front = "" if chunk_tokenizer.gap else " "
    chunks = [front + word for word in [*ENGLISH, *KOREAN]]
    assert len(chunks) > 3 * ROW
    places, flat, lengths = chunk_tokenizer._in_rows(chunks, np.arange(len(chunks)))
    assert len(places) > len(chunks) // 2  # by far most went in rows, or this test shows nothing
    expected = naive(chunk_tokenizer, chunks)
    assert [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])] == [expected[at] for at in places]
    assert ids_of(chunk_tokenizer, chunks, np.ones(len(chunks), bool)) == expected


def test_a_chunk_with_a_mark_of_its_own(chunk_tokenizer: ChunkTokenizer) -> None:
    """Its row is taken chunk by chunk, the others are not."""
    front = "" if chunk_tokenizer.gap else " "
    assert bool(chunk_tokenizer.separator) is (chunk_tokenizer.begins is None)
    chunks = [f"{front}{word}" for word in ["the", "fox"] * ROW]
    chunks[3] = front + (chunk_tokenizer.separator or "the\u00a0fox")  # the normalizer makes it two words
    everywhere = np.ones(len(chunks), bool)
    assert chunk_tokenizer._in_rows(chunks, np.arange(len(chunks)))[0].tolist() == list(range(ROW, 2 * ROW))
    assert ids_of(chunk_tokenizer, chunks, everywhere) == naive(chunk_tokenizer, chunks)


def test_a_chunk_with_an_added_token_is_marked(chunk_tokenizer: ChunkTokenizer) -> None:
    front = "" if chunk_tokenizer.gap else " "
    mask = next(content for content in chunk_tokenizer.added if "mask" in content.lower())
    chunks = [f"{front}{word}" for word in ["the", f"x{mask}y", "fox", mask, "\u2603"]]  # the last one is unknown
    expected = naive(chunk_tokenizer, chunks)
    expected[1] = expected[3] = [WHOLE]
    for joins in (np.ones(5, bool), np.zeros(5, bool)):
        assert ids_of(chunk_tokenizer, chunks, joins) == expected


@pytest.mark.parametrize("kind", ["wordpiece", "bytelevel"])
def test_without_a_separator(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "SEPARATORS", "")
    rust, texts = make_tokenizer(kind), [*mixed(30), *hostile(300, seed=5)]
    alone = Tokenizer(rust)
    assert alone.plain.lookup is not None
    assert alone.plain.lookup.tokenize.separator == ""
    monkeypatch.undo()
    assert np.array_equal(alone(texts).ids, Tokenizer(rust)(texts).ids)


def test_characters_of_later_planes_keep_their_numbers() -> None:
    """A hash is the same before and after numbers were drawn for more characters."""
    keys.cache_clear()
    key = keys()[0]
    codes = np.array([0x61, 0xAC00, 0xFFFD], np.uint32)
    before = key.take(codes)
    size = len(key.values)
    emoji, last = key.take(np.array([0x1F600], np.uint32)), key.take(np.array([0x10FFFF], np.uint32))
    assert size < len(key.values) == 0x110000
    assert np.array_equal(key.take(codes), before)
    assert key.take(np.array([0x1F600, 0x10FFFF], np.uint32)).tolist() == [*emoji.tolist(), *last.tolist()]
    assert len({*before.tolist(), *emoji.tolist(), *last.tolist()}) == 5
    keys.cache_clear()


def assert_cold_is_warm(path: Path, texts: list[str]) -> None:
    """Cold in one batch, cold in many small ones, and warm: the ids of `tokenizers`, and every word learned once."""
    rust = RustTokenizer.from_file(str(path))
    tokenizer = Tokenizer(rust)
    lookup = tokenizer.plain.lookup
    assert lookup is not None
    found = rust.encode_batch(texts)
    expected = np.concatenate([np.array(one.ids, np.int32) for one in found])
    assert np.array_equal(tokenizer(texts).ids, expected)
    size = lookup.table.size
    assert size > 100
    assert np.array_equal(tokenizer(texts).ids, expected)
    assert lookup.table.size == size
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
