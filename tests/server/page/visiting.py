"""A real browser on the page of a real server with tiny models: what its visitors do and see.

The models' weights are random, so hits mean nothing, but a text's own words find it first.
"""

from collections.abc import Callable
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")
from munjang.index import Index
from munjang.server.embedder import Embedder
from munjang.server.reranker import Reranker
from munjang.server.service import Service
from munjang.server.views import ServedIndex

WORDS = ["sea", "mountain", "river", "money", "court", "bread", "music", "train", "doctor", "forest"]
TEXTS = [f"The {a} and the {b}" for a in WORDS for b in WORDS[:4] if a != b]
PHONE = {"width": 360, "height": 740}
Visit = Callable[..., Any]


def service(model: BiEncoder, scorer: CrossEncoder | None = None, with_index: bool = True) -> Service:
    index = Index.open("memory:", model) if with_index else None
    if index is not None:
        metadata = [{"lang": "en" if n % 2 else "ko", "year": 2000 + n} for n in range(len(TEXTS))]
        index.add(TEXTS, [f"d/{n}" for n in range(len(TEXTS))], metadata)
    indexes = [] if index is None else [ServedIndex("default", index)]
    return Service([Embedder("tiny", model)], [] if scorer is None else [Reranker("ranker", scorer)], indexes)


def texts(page: Any, order: str) -> list[str]:
    found: list[str] = page.locator(f"#{order}-hits .text").all_text_contents()
    return found


def searched(page: Any, query: str) -> None:
    """Type, and wait until the order of this query is there."""
    page.fill("#query", query)
    page.wait_for_function("query => location.hash === `#search?q=${encodeURIComponent(query)}`", arg=query)


def first_becomes(page: Any, text: str) -> None:
    page.wait_for_function("text => document.querySelector('#retrieved-hits .text')?.textContent === text", arg=text)


def number_becomes(page: Any, number: int, what: str) -> None:
    page.wait_for_function("([what, number]) => document.querySelectorAll(what).length === number", arg=[what, number])


def status_becomes(page: Any, text: str) -> None:
    page.wait_for_function("text => document.getElementById('status').textContent.startsWith(text)", arg=text)


def width_beyond(page: Any) -> int:
    """How far the page could be scrolled sideways."""
    beyond: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return max(0, beyond)
