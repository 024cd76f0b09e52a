"""The tables of speed on a GPU, from the record of `python -m benchmarks.gpu` and its kin on an H200."""

import json
from pathlib import Path
from typing import Any

from docs.generate.scores import rows_of

RECORD = "benchmarks/results/2026-11-19-h200-whole.json"
STEPS = {  # of the record: in English, in Korean
    "host: distinct texts": ("host: distinct texts", "호스트: 서로 다른 글 고르기"),
    "host: join, bytes, lengths": ("host: join, encode to bytes, lengths", "호스트: 잇기, 바이트로, 길이"),
    "device: look-up": ("device: look-up", "장치: 표 찾기"),
    "device: look-up, special tokens, sorting": (
        "device: look-up, special tokens, sorting",
        "장치: 표 찾기, 특수 토큰, 정렬",
    ),
    "device alone, float16, 131072 tokens": ("device: the network alone", "장치: 네트워크만"),
    "copy: to a fresh array, by pinned pieces": ("copy to a fresh array", "새 배열로 복사"),
    "whole: strings to torch, float16": ("**whole: strings to torch**", "**전체: 문자열에서 torch까지**"),
    "whole: strings to numpy, float16": ("**whole: strings to numpy**", "**전체: 문자열에서 numpy까지**"),
}
WORDS: dict[str, dict[str, Any]] = {
    "en": {
        "head": ("strings to numpy, float16", "per second, best", "median", "times sentence-transformers at its best"),
        "minilm": "all-MiniLM-L6-v2, 84,852 English sentences of 17 tokens",
        "bfloat16": "the same in bfloat16",
        "korean": "`ko-en-small`, 60,000 Korean sentences of 25 tokens",
        "base": "BERT-base size, 20,000 sentences",
        "pairs": "cross-encoder of MiniLM size, pairs of sentences",
        "one": "one short sentence",
        "training": "training, BERT-base size, 512 pairs a batch",
        "steps": ("each step alone, sentences per second", "English", "Korean"),
    },
    "ko": {
        "head": ("문자열에서 numpy까지, float16", "초당, 최고", "중앙값", "sentence-transformers 최고 설정의 몇 배"),
        "minilm": "all-MiniLM-L6-v2, 17토큰 영어 84,852문장",
        "bfloat16": "같은 것, bfloat16",
        "korean": "`ko-en-small`, 25토큰 한국어 60,000문장",
        "base": "BERT-base 크기, 20,000문장",
        "pairs": "MiniLM 크기의 크로스 인코더, 문장 쌍",
        "one": "짧은 문장 하나",
        "training": "학습, BERT-base 크기, 배치 512쌍",
        "steps": ("단계마다 따로, 초당 문장", "영어", "한국어"),
    },
}


def table(root: Path, document: str) -> str:
    """Return both tables in the document's language: whole calls beside sentence-transformers, and the steps."""
    record, words = _read(root), WORDS["ko" if document.endswith(".ko.md") else "en"]
    korean = record["korean, ko-en-small"]
    best, half, bfloat = record["english"]["best"]
    their_base, our_base = record["BERT-base shape"]["base"]
    our_pairs, *others = record["english"]["pairs"]
    theirs, ours = (row["milliseconds"] for row in record["english"]["latency"])
    training = record["training"]
    whole = [
        [*words["head"]],
        _cells(words["minilm"], half, best),
        _cells(words["bfloat16"], bfloat, best),
        _cells(words["korean"], korean["ours"][0]),
        _cells(words["base"], our_base, their_base),
        _cells(words["pairs"], our_pairs, max(others, key=lambda row: row["per_second"])),
        [words["one"], "", f"{ours:.2f} ms", f"{theirs / ours:.1f}"],
        [words["training"], "", _thousands(training["ours bfloat16"]["pairs_per_s"]), f"{training['times']:.1f}"],
    ]
    sides = [{row["what"]: row["per_second"] for row in side["steps"]} for side in (record["english"], korean)]
    steps = [
        [titles[document.endswith(".ko.md")], *(_thousands(side[name]) for side in sides)]
        for name, titles in STEPS.items()
    ]
    return f"{rows_of(whole)}\n\n{rows_of([[*words['steps']], *steps])}"


def headline(root: Path) -> tuple[str, ...]:
    """Return sentences per second, and how many times sentence-transformers encoding and training are."""
    record = _read(root)
    half = record["english"]["best"][1]
    return _thousands(half["per_second"]), f"{half['times']:.0f}", f"{record['training']['times']:.1f}"


def _read(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((root / RECORD).read_text(encoding="utf-8"))
    return found


def _cells(title: str, ours: dict[str, Any], theirs: dict[str, Any] | None = None) -> list[str]:
    times = "" if theirs is None else f"{ours['per_second'] / theirs['per_second']:.1f}"
    return [title, _thousands(ours["per_second"]), _thousands(ours["median"]), times]


def _thousands(value: float) -> str:
    """Return a rate with three digits that count."""
    digits = max(0, len(str(round(value))) - 3)
    return f"{round(value, -digits):,.0f}"
