"""Cutting documents in parts gives what cutting them at once gives."""

from pathlib import Path

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.index import Index
from munjang.index.cutting import PART_CHARS, cut_documents

TEXTS = ["One sentence. Another one. " * 400, "", "short", "나는 학교에 간다. " * 900, *["a few words"] * 9]
IDS = [str(number) for number in range(len(TEXTS))]


@pytest.fixture
def index(tiny_bert: Path) -> Index:
    return Index.open("memory:", BiEncoder.load(tiny_bert, "cpu", threads=1), chunk=200)


def test_parts_together_are_the_whole(index: Index) -> None:
    metadata = [{"number": number} for number in range(len(TEXTS))]
    documents = list(zip(IDS, TEXTS, metadata, strict=True))
    whole = cut_documents(documents, index.cutter, index.store, {})
    assert index.cut(TEXTS, IDS, metadata) == whole
    parts = list(index.cut_in_parts(TEXTS, IDS, metadata))
    assert len(parts) > 1
    for part in parts:
        assert sum(map(len, part.sources.values())) <= PART_CHARS or len(part.sources) == 1
    assert index.cut([], [], []).ids == []


def test_what_is_wrong_is_said_before_anything_is_cut(index: Index) -> None:
    with pytest.raises(InputError, match="'a' is given twice"):
        next(index.cut_in_parts(["x" * PART_CHARS] * 2, ["a", "a"], [{}, {}]))
