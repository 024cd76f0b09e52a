"""Sorted rows of a GPU, here by Triton's interpreter: texts and pairs as the host finishes them, longest first."""

import numpy as np
import pytest
import torch

from munjang.text.device import SortedRow, finish, join
from munjang.text.flat import cumulative, gather
from munjang.text.lookup import device
from munjang.text.lookup.device import DeviceLookup
from munjang.text.packing import pack
from munjang.text.tokenizer import Tokenizer, Tokens
from tests.models import make_tokenizer
from tests.texts import HOSTILE, hostile, mixed

CPU = torch.device("cpu")
TEXTS = [*HOSTILE[:25], *hostile(200), *mixed(60, longest=25), "", "<pad> a <pad>"]
pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let long texts go whole: every step takes the interpreter some milliseconds."""
    monkeypatch.setattr(device, "MAX_TEXT_CHARACTERS", 150)


def lookup_of(tokenizer: Tokenizer) -> DeviceLookup:
    lookup = tokenizer.on(CPU)
    assert lookup is not None
    assert tokenizer.on(CPU) is lookup
    return lookup


def assert_same(row: SortedRow, tokens: Tokens, pad_id: int | None = None) -> None:
    order = np.argsort(-tokens.lengths, kind="stable")
    np.testing.assert_array_equal(row.rows_B, order)
    np.testing.assert_array_equal(row.order_B.numpy(), order)
    np.testing.assert_array_equal(row.cut_rows, tokens.cut_rows)
    np.testing.assert_array_equal(row.lengths, tokens.lengths[order])
    starts = cumulative(tokens.lengths)
    ids = gather(tokens.ids, starts, order, row.lengths)
    types = None if tokens.types is None else gather(tokens.types, starts, order, row.lengths)
    packed = pack(ids, row.lengths, types, None, pad_id)
    assert torch.equal(row.ids_T, packed.ids_T)
    assert torch.equal(row.positions_T, packed.positions_T)
    assert (row.types_T is None) == (packed.types_T is None)
    assert row.types_T is None or packed.types_T is None or torch.equal(row.types_T, packed.types_T)


@pytest.mark.parametrize("kind", ["wordpiece", "unigram", "bytelevel"])
@pytest.mark.parametrize("max_length", [None, 16, 3, 2])
def test_texts_and_pairs(kind: str, max_length: int | None) -> None:
    tokenizer = Tokenizer(make_tokenizer(kind), max_length)
    lookup = lookup_of(tokenizer)
    assert_same(finish(lookup(TEXTS), tokenizer), tokenizer(TEXTS))
    first, second = np.random.default_rng(0).integers(0, len(TEXTS), (2, 300))
    row = join(lookup(TEXTS), first, second, tokenizer)
    assert_same(row, tokenizer.pairs([TEXTS[at] for at in first], [TEXTS[at] for at in second]))


def test_padding_tokens_are_no_positions() -> None:
    tokenizer = Tokenizer(make_tokenizer("bytelevel"))
    pad_id = tokenizer.rust.token_to_id("<pad>")
    tokens = tokenizer(TEXTS)
    assert (tokens.ids == pad_id).sum() >= 2
    assert_same(finish(lookup_of(tokenizer)(TEXTS), tokenizer, pad_id), tokens, pad_id)


def test_texts_without_any_token() -> None:
    tokenizer = Tokenizer(make_tokenizer("wordpiece"), has_special=False)
    assert_same(finish(lookup_of(tokenizer)(["", "the", " "]), tokenizer), tokenizer(["", "the", " "]))
    assert_same(finish(lookup_of(tokenizer)(["", ""]), tokenizer), tokenizer(["", ""]))


def test_a_tokenizer_that_drops_ids_has_none() -> None:
    tokenizer = Tokenizer(make_tokenizer("wordpiece"))
    tokenizer.dropped = 1
    assert tokenizer.on(CPU) is None
