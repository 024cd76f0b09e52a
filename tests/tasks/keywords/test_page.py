"""The page of keywords: which words of a text are marked."""

import re
from pathlib import Path

import pytest

from munjang.tasks.keywords.extract import Keyword
from munjang.tasks.keywords.page import write_keywords


@pytest.mark.parametrize(
    ("text", "phrases", "marked"),
    [
        ("A category of Cats: the cat, concat", ["cat"], ["cat"]),
        ("C# and C++ or c", ["c#", "c++"], ["C#", "C++"]),
        ("Red, apple trees; red apples", ["red apple"], ["Red, apple"]),
        ("Straße: the straßen", ["straße"], ["Straße"]),
        ("SNS를 쓰는 SNSers", ["sns"], ["SNS"]),
        ("수도는 상수도가 아니다", ["수도"], ["수도"]),  # a particle may follow, but nothing stand before it
        ("대한민국의 수도는 서울특별시이다", ["대한민국의 수도", "서울특별시"], ["대한민국의 수도", "서울특별시"]),
        ("그학교에서", ["학교"], ["학교"]),  # no other place: a keyword that was found is shown
        ("the cat", [], []),
    ],
)
def test_whole_words_are_marked(tmp_path: Path, text: str, phrases: list[str], marked: list[str]) -> None:
    write_keywords(tmp_path / "page.html", [text], [[Keyword(phrase, 0.5) for phrase in phrases]])
    shown = (tmp_path / "page.html").read_text("utf-8")
    assert re.findall("<mark>(.*?)</mark>", shown) == marked
