"""Helpers of the tests of a BiEncoder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from munjang import BiEncoder

TEXTS = ["나는 오늘 학교에 갔다", "the quick brown fox", "", "music", "the quick brown fox jumps over"]


def prompted(make: Callable[..., Path], **more: Any) -> BiEncoder:
    prompts = '{"query": "quick: ", "document": "brown: ", "other": "fox: "}'
    return BiEncoder.load(make("bert", prompts=prompts, **more))
