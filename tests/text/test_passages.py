import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from munjang.errors import InputError
from munjang.text.graphemes import boundaries
from munjang.text.passages import PassageCutter, characters

PIECES = [
    "Rain fell. ",
    "비가 왔다. ",
    "그는왔다.",
    "今日は雨。",
    "\r\n",
    "\n\n",
    "# Title\n",
    "- item\n",
    "word ",
    "긴낱말" * 9,
]
PIECES += [
    "e\u0301",
    " \u0301",
    "👩‍👩‍👧‍👦",
    "🇰🇷",
    "\u1100\u1161\u11a8",
    "\u3000",
    "\x00",
    "Dr. ",
    "1. ",
    "ที่นี่",
    " " * 30,
]
DOCUMENTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=60)


def whole_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def dearer_together(texts: Sequence[str]) -> list[int]:
    """A count that is more than the sum of its parts, as no size in characters is."""
    return [len(text) + len(text) // 7 for text in texts]


def check(text: str, cutter: PassageCutter) -> None:
    passages = cutter.cut(text)
    covered = set()
    for passage in passages:
        assert text[passage.start : passage.end] == passage.text
        covered |= set(range(passage.start, passage.end))
    assert all(at in covered or text[at].isspace() for at in range(len(text)))
    for before, after in pairwise(passages):
        assert before.start < after.start
        assert before.end < after.end
    edges = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    for passage in passages:
        assert {passage.start, passage.end} <= edges
        if int(cutter.count([passage.text])[0]) > cutter.max_size:  # one character that is larger than the limit
            # by our own rule, which ties a virama to any letter behind it
            assert len(boundaries(passage.text, 0, len(passage.text))) == 1


@pytest.mark.parametrize("count", [characters, whole_words, dearer_together])
@given(text=DOCUMENTS, max_size=st.integers(1, 40), part=st.floats(0, 0.5))
@example(text="a " * 50, max_size=3, part=0.5)
@example(text="", max_size=1, part=0)
@example(text="\u094d\u0904", max_size=1, part=0)
def test_every_cut_is_exact(count: Callable[..., list[int]], text: str, max_size: int, part: float) -> None:
    check(text, PassageCutter(max_size, int(max_size * part), count))


def texts(document: str, max_size: int, overlap: int = 0, **options: Callable[..., list[int]]) -> list[str]:
    return [passage.text for passage in PassageCutter(max_size, overlap, **options).cut(document)]


@pytest.mark.parametrize("text", ["", " ", "short", " as it is. \n"])
def test_what_fits_is_one_passage(text: str) -> None:
    assert texts(text, 20) == [text]


def test_white_space_that_does_not_fit_is_an_empty_passage() -> None:
    assert texts(" \n" * 50, 20) == [""]


def test_whole_sentences_overlap() -> None:
    assert texts("One two. Three. Four. Five six.", 16, 7) == ["One two. Three.", "Three. Four.", "Four. Five six."]
    assert texts("One two. Three. Four. Five six.", 16) == ["One two. Three.", "Four. Five six."]


def test_overlap_gives_way_to_what_is_new() -> None:
    assert texts("Ab. Abcdefghijklmnopq. Ab.", 19, 9) == ["Ab.", "Abcdefghijklmnopq.", "Ab."]


def test_a_sentence_of_just_the_limit_stays_whole() -> None:
    assert texts("Abcdefgh. \n\nAbcdefgh.", 9) == ["Abcdefgh.", "Abcdefgh."]


def test_a_long_sentence_is_cut_at_lines_then_words_then_inside() -> None:
    assert texts("one two\nthree four\nfive", 12) == ["one two", "three four", "five"]
    assert texts("one two three four", 9) == ["one two", "three", "four"]
    assert texts("가나다라마바사 아자", 5) == ["가나다라마", "바사 아자"]
    assert texts("ab" + "e\u0301" * 4, 3) == ["ab", "e\u0301", "e\u0301", "e\u0301", "e\u0301"]


def test_a_word_that_a_tokenizer_gives_up_on_is_cut_all_the_same() -> None:
    found = texts("띄어쓰기가없는문장" * 1000, 10, count=whole_words)
    assert max(map(len, found)) < 10 * 17
    assert "".join(found) == "띄어쓰기가없는문장" * 1000


def test_a_heading_stays_with_what_follows() -> None:
    assert texts("Body one here.\n\n# Title\n\nBody two here.", 25) == ["Body one here.", "# Title\n\nBody two here."]


def test_tokens_are_counted_by_the_tokenizer_given(tiny_bert: object) -> None:
    from munjang import BiEncoder

    tokenizer = BiEncoder.load(tiny_bert, device="cpu").model.tokenizer  # type: ignore[arg-type]
    document = "Rain fell on the town. 비가 왔다. The dog slept all day long, and nobody saw it leave. " * 9
    cutter = PassageCutter(24, 8, lambda texts: tokenizer.bodies(texts)[1])
    check(document, cutter)
    assert len(cutter.cut(document)) > 5


@pytest.mark.parametrize("piece", ["The dog slept all day. ", "中", "가", "word ", "A. ", "\n- x", "e\u0301", "# \n"])
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    started = time.process_time()
    passages = PassageCutter(1000, 500).cut(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 6  # 0.1 to 0.6 s alone; a million characters take five times that
    assert len(passages) >= 200


@pytest.mark.slow
def test_a_million_characters() -> None:
    started = time.process_time()
    assert len(PassageCutter(1000, 100).cut("비가 왔다. The dog slept all day. 中文没有空格。 " * 25_000)) > 1000
    assert time.process_time() - started < 12  # about two seconds


@pytest.mark.parametrize(("max_size", "overlap"), [(0, 0), (10, -1), (10, 6)])
def test_sizes_that_make_no_sense(max_size: int, overlap: int) -> None:
    with pytest.raises(InputError, match=r"max_size|overlap"):
        PassageCutter(max_size, overlap)
