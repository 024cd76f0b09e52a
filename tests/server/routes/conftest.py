"""A server with an index."""

from collections.abc import Iterator
from typing import Any

import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from tests.server.routes.searching import TEXTS


@pytest.fixture
def searching(model: BiEncoder, scorer: CrossEncoder) -> Iterator[Any]:
    """With one document a text, of a year each, and a re-ranker."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    pytest.importorskip("httpx")
    from munjang.index import Index
    from munjang.server.embedder import Embedder
    from munjang.server.limits import RequestLimits
    from munjang.server.reranker import Reranker
    from munjang.server.service import Service
    from munjang.server.views import ServedIndex
    from tests.server.running import running

    index = Index.open("memory:", model)
    index.add(TEXTS, [f"d/{n}" for n in range(len(TEXTS))], [{"year": 2000 + n} for n in range(len(TEXTS))])
    limits = RequestLimits(max_texts=100, max_text_chars=2000)
    indexes = [ServedIndex("default", index)]
    service = Service([Embedder("tiny", model)], [Reranker("ranker", scorer)], indexes, request_limits=limits)
    with running(service) as started:
        yield started
