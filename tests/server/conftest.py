"""Tiny models and one server for all tests of routes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder


@pytest.fixture(scope="session")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, "cpu", threads=1)


@pytest.fixture(scope="session")
def scorer(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="cross", num_labels=1), "cpu", threads=1)


@pytest.fixture(scope="session")
def server(model: BiEncoder, scorer: CrossEncoder) -> Iterator[Any]:
    """With an embedding model that may be cut to 8 and 16, another one, and a re-ranker."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    pytest.importorskip("httpx")
    from munjang.server.embedder import Embedder
    from munjang.server.limits import RequestLimits
    from munjang.server.reranker import Reranker
    from munjang.server.service import Service
    from tests.server.running import running

    embedders = [Embedder("tiny", model, (8, 16)), Embedder("plain", model)]
    sizes = RequestLimits(max_texts=64, max_text_chars=2000)
    with running(Service(embedders, [Reranker("ranker", scorer)], request_limits=sizes)) as started:
        yield started
