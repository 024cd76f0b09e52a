"""Service: the loaded models with their lanes, the index, and the limits; what routes ask."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request

from munjang.errors import InputError, MunjangError
from munjang.server.batcher import Batcher
from munjang.server.embedder import Embedder, Embedding, Inputs
from munjang.server.errors import Refused
from munjang.server.gate import ClientGone
from munjang.server.lane import Lane, Limits, Part, Work
from munjang.server.metrics import Metrics
from munjang.server.reranker import Reranker
from munjang.types import Floats

T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """The largest request."""

    max_texts: int = 2048
    max_text_chars: int = 100_000

    def check(self, texts: Sequence[Any], param: str) -> None:
        """Refuse what is more than this; nothing at all is refused too."""
        if not texts:
            raise Refused("invalid", f"{param} is empty; give at least one text.", param=param)
        if len(texts) > self.max_texts:
            raise Refused("too_large", f"{len(texts)} texts; {self.max_texts} at once are allowed.", param=param)
        longest = max(map(len, texts))
        if longest > self.max_text_chars:
            message = f"A text has {longest} characters or tokens; {self.max_text_chars} are allowed."
            raise Refused("too_large", message, param=param)


@dataclass
class Service:
    """Models by name; the first of each kind answers where a request names none."""

    embedders: Sequence[Embedder] = ()
    rerankers: Sequence[Reranker] = ()
    index: Any = None  # of one of the embedders
    limits: Limits = field(default_factory=Limits)
    sizes: Sizes = field(default_factory=Sizes)
    workers: int = 1
    is_ready: bool = False
    num_writes: int = 0  # to the index through this server: what was drawn of it before is old

    def __post_init__(self) -> None:
        if not self.embedders and not self.rerankers:
            raise InputError("Nothing to serve: give at least one model, re-ranker or index.")
        if self.index is not None and not any(each.model is self.index.model for each in self.embedders):
            raise InputError("The index needs its own model among the embedding models.")
        self.metrics, self.batcher = Metrics(), Batcher(self.workers)
        self.batcher.on_batch = self._count
        models: list[Embedder | Reranker] = [*self.embedders, *self.rerankers]
        for model in models:
            self.batcher.add(Lane(model.name, model.compute, self.limits, num_at_once=model.num_at_once))
        self._index_thread = ThreadPoolExecutor(1, "munjang-index")  # one writer, and stores need no locks

    def embedder(self, name: str | None) -> Embedder:
        """The bi-encoder of this name."""
        return _named(self.embedders, name, "embedding model")

    def reranker(self, name: str | None) -> Reranker:
        """The cross-encoder of this name."""
        return _named(self.rerankers, name, "re-ranker")

    async def embed(self, model: Embedder, inputs: Inputs, asked: Embedding, param: str) -> tuple[Floats, int]:
        """Vectors of texts, and how many tokens they have."""
        self.sizes.check(inputs, param)
        work, rows = await self._ask(model.name, lambda: model.prepare(inputs, asked))
        return model.finish(rows, asked), int(sum(work.tokens))

    async def score(
        self, model: Reranker, query: str, texts: Sequence[str], param: str, truncate: bool = True
    ) -> tuple[list[float], int]:
        """Logits of a query with each text, and how many tokens they have."""
        self.sizes.check([*texts], param)
        self.sizes.check([query], "query")
        work, scores = await self._ask(model.name, lambda: model.prepare(query, texts, truncate))
        return scores, int(sum(work.tokens))

    async def _ask(self, name: str, prepare: Callable[[], Work]) -> tuple[Work, list[Any]]:
        try:
            return await self.batcher.ask(self.batcher.lanes[name], prepare)
        except MunjangError:
            raise
        except Exception as error:
            raise Refused("model", f"{name} failed on this request; its log has more.") from error

    async def with_index(self, function: Callable[[], T]) -> T:
        """Something that the index does, in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._index_thread, function)

    async def close(self) -> None:
        """Finish what is here, then let go."""
        self.is_ready = False
        await self.batcher.drain()
        self._index_thread.shutdown()
        if self.index is not None:
            self.index.close()

    def _count(self, lane: Lane, parts: Sequence[Part], seconds: float) -> None:
        num_units = sum(part.end - part.start for part in parts)
        self.metrics.count("te_embed_count", num_units, model=lane.name)
        self.metrics.count("te_batch_count", model=lane.name)
        self.metrics.observe("te_batch_next_size", num_units, model=lane.name)
        self.metrics.observe("te_batch_next_tokens", sum(part.num_tokens for part in parts), model=lane.name)
        self.metrics.observe("te_request_inference_duration", seconds, model=lane.name)


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of some work; it is cancelled when the client goes away first."""
    working, watching = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        watching.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _named(models: Sequence[T], name: str | None, what: str) -> T:
    if not models:
        raise Refused("not_found", f"This server has no {what}.", param="model", code="model_not_found")
    if name is None:
        return models[0]
    by_name = {model.name: model for model in models}  # type: ignore[attr-defined]
    if name not in by_name:
        message = f"This server has no {what} of that name; choose from {', '.join(sorted(by_name))}."
        raise Refused("not_found", message, param="model", code="model_not_found")
    return by_name[name]
