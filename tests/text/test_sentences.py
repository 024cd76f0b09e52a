import time

import pytest

from munjang.text.sentences import spans, split


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in spans(text)]


def test_split_takes_every_line_for_a_sentence() -> None:
    assert split("Dr. Kim came in. He sat\ndown. 비가 왔다! ") == ["Dr. Kim came in.", "He sat", "down.", "비가 왔다!"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \r\n\t ", []),
        (
            "Mr. Lee paid 3.50 at e.g. Seoul. Why? (No.) Yes!",
            ["Mr. Lee paid 3.50 at e.g. Seoul.", "Why?", "(No.)", "Yes!"],
        ),
        ("그는 왔다. 그리고 갔다!\r\n다음 날이다.", ["그는 왔다.", "그리고 갔다!", "다음 날이다."]),
        ("그는왔다.비가왔다!버전3.5다.", ["그는왔다.", "비가왔다!", "버전3.5다."]),
        ("今日は雨。「そう？」明日は晴れ。", ["今日は雨。", "「そう？」", "明日は晴れ。"]),
        ("a sentence goes\non here. And\r\nhere", ["a sentence goes\non here.", "And\r\nhere"]),
        ("one\n\ntwo\r\n\r\nthree\n \nfour", ["one", "two", "three", "four"]),
        ("# Title\nbody\n## Two\r\nmore", ["# Title", "body", "## Two", "more"]),
        ("# A\n# B\n", ["# A", "# B"]),
        (
            "- one\n- two\n  goes on\n1. First. Then\n2) next",
            ["- one", "- two\n  goes on", "1. First.", "Then", "2) next"],
        ),
        ("| a | b |\n|---|---|\n> said", ["| a | b |", "|---|---|", "> said"]),
        ("가. 첫째 항목이다. 나. 둘째", ["가. 첫째 항목이다.", "나. 둘째"]),
    ],
)
def test_spans(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@pytest.mark.parametrize("piece", ["A. ", "1. ", "?)", "... ", "\n", "# \n", "- ", "가.", "word "])
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    started = time.process_time()
    spans(piece * (200_000 // len(piece)))
    split(piece * (200_000 // len(piece)))
    assert time.process_time() - started < 3  # about 0.2 s; looking back to the start of a text took minutes
