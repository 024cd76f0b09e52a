"""Service: the loaded models with their queues, the index and the limits, for the routes."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from fastapi import Request

from munjang.data.documents import Section
from munjang.errors import InputError, MunjangError
from munjang.index.documents import Metadata
from munjang.server.batcher import Batcher, expected_tokens
from munjang.server.beside import BesideEmbedder
from munjang.server.embedder import Embedder, Embedding, Inputs
from munjang.server.errors import ClientGone, Refused
from munjang.server.limits import QueueLimits, RequestLimits
from munjang.server.metrics import Metrics
from munjang.server.model_queue import ModelQueue, Payload, Slice
from munjang.server.reranker import Reranker, Scoring
from munjang.server.steps import Steps
from munjang.server.telemetry import Off, Telemetry, Times
from munjang.server.tenants import Key
from munjang.server.turns import Turns
from munjang.server.views import ServedIndex, View
from munjang.types import Floats

T = TypeVar("T")
WRITE_PASSAGES = 64  # stored at once, before others get their turn at the index


@dataclass
class Service:
    """Models by name; the first of each kind answers where a request names none."""

    embedders: Sequence[Embedder] = ()
    rerankers: Sequence[Reranker] = ()
    indexes: Sequence[ServedIndex] = ()  # each of one of the embedders
    queue_limits: QueueLimits = field(default_factory=QueueLimits)
    request_limits: RequestLimits = field(default_factory=RequestLimits)
    workers: int = 1
    metrics: Metrics = field(default_factory=Metrics)  # which go on when another service takes over
    telemetry: Telemetry = field(default_factory=Off)
    beside: Sequence[BesideEmbedder] = ()  # of sparse and of token vectors
    is_ready: bool = False
    on_close: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not (self.embedders or self.rerankers or self.beside):
            raise InputError("Nothing to serve: give at least one model, re-ranker or index.")
        names = [served.name for served in self.indexes]
        for served in self.indexes:
            if not any(embedder.model is served.index.model for embedder in self.embedders):
                raise InputError("The index needs its own model among the embedding models.")
            if names.count(served.name) > 1:
                raise InputError(f"Two indexes are called {served.name!r}; give each a name of its own.")
        self.batcher = Batcher(self.workers)
        self.answers = Turns("answers")
        self.batcher.on_batch = self._count
        for served in self.indexes:
            served.turns.deadline_s = self.queue_limits.deadline_s
        self._times: dict[int, Times] = {}  # of requests that are here, by their payload
        models: list[Embedder | Reranker | BesideEmbedder] = [*self.embedders, *self.rerankers, *self.beside]
        for model in models:
            self.batcher.add(ModelQueue(model.name, model.compute, self.queue_limits, num_at_once=model.num_at_once))

    def embedder(self, name: str | None) -> Embedder:
        """Return the bi-encoder of this name."""
        return _named(self.embedders, name, "embedding model")

    def reranker(self, name: str | None) -> Reranker:
        """Return the cross-encoder of this name."""
        return _named(self.rerankers, name, "re-ranker")

    def beside_model(self, name: str | None, kind: str) -> BesideEmbedder:
        """Return the sparse or late-interaction model of this name."""
        what = {"sparse": "sparse model", "late": "late-interaction model"}[kind]
        return _named([model for model in self.beside if model.kind == kind], name, what)

    async def embed_beside(
        self, model: BesideEmbedder, texts: Sequence[Any], role: str, truncate: bool
    ) -> tuple[list[Any], "Usage"]:
        """Return a sparse vector, or token vectors, of each text and what was read for them."""

        def prepare() -> Steps[Payload]:
            payload = yield from model.prepare(texts, role, truncate)
            if model.kind == "late":
                self.request_limits.check_numbers(sum(payload.tokens), model.model.dimension, "inputs")
            return payload

        payload, rows = await self._submit(model, texts, "inputs", prepare())
        if model.kind == "sparse":
            self.request_limits.check_numbers(sum(len(values) for _, values in rows), 2, "inputs")
        return rows, Usage(model.name, len(texts), int(sum(payload.tokens)), payload.cut_rows)

    async def embed(self, model: Embedder, inputs: Inputs, asked: Embedding, param: str) -> tuple[Floats, "Usage"]:
        """Return the vectors of texts and what was read for them."""
        payload, rows = await self._submit(model, inputs, param, model.prepare(inputs, asked))
        return model.finish(rows, asked), Usage(model.name, len(inputs), int(sum(payload.tokens)), payload.cut_rows)

    async def embed_tokens(
        self, model: Embedder, inputs: Inputs, asked: Embedding, param: str
    ) -> tuple[list[Floats], "Usage"]:
        """Return a vector for each token of each text, and what was read for them."""
        asked = replace(asked, per_token=True)

        def prepare() -> Steps[Payload]:
            payload = yield from model.prepare(inputs, asked)
            self.request_limits.check_numbers(sum(payload.tokens), model.model.width, param)
            return payload

        payload, rows = await self._submit(model, inputs, param, prepare())
        for vectors in rows:
            model.check_finite(vectors)
        return rows, Usage(model.name, len(inputs), int(sum(payload.tokens)), payload.cut_rows)

    async def score(
        self, model: Reranker, query: str, texts: Sequence[str], param: str, asked: Scoring | None = None
    ) -> tuple[list[float], "Usage"]:
        """Return the logits of a query with each text and what was read for them."""
        self.request_limits.check([query], "query")
        return await self._score(model, [query], texts, param, asked)

    async def score_pairs(
        self, model: Reranker, pairs: Sequence[Sequence[str]], param: str, asked: Scoring | None = None
    ) -> tuple[list[float], "Usage"]:
        """Return the logits of pairs and what was read for them."""
        firsts, seconds = [first for first, _ in pairs], [second for _, second in pairs]
        self.request_limits.check(firsts, param)
        return await self._score(model, firsts, seconds, param, asked)

    async def _score(
        self, model: Reranker, queries: Sequence[str], texts: Sequence[str], param: str, asked: Scoring | None
    ) -> tuple[list[float], "Usage"]:
        payload, scores = await self._submit(model, texts, param, model.prepare(queries, texts, asked))
        return scores, Usage(model.name, len(texts), int(sum(payload.tokens)), payload.cut_rows)

    async def _submit(
        self, model: Embedder | Reranker | BesideEmbedder, inputs: Inputs, param: str, prepare: Steps[Payload]
    ) -> tuple[Payload, list[Any]]:
        self.request_limits.check(inputs, param)
        num_tokens = expected_tokens(inputs, model.max_length)
        return await self._compute(model, sum(map(len, inputs)), num_tokens, param, prepare)

    async def _compute(
        self,
        model: Embedder | Reranker | BesideEmbedder,
        num_chars: int,
        num_tokens: int,
        param: str,
        prepare: Steps[Payload],
    ) -> tuple[Payload, list[Any]]:
        times = Times(model.name)

        def bounded() -> Steps[Payload]:
            payload = yield from times.around(prepare, self._times)
            self.request_limits.check_tokens(int(sum(payload.tokens)), param)
            return payload

        try:
            return await self.batcher.submit(self.batcher.queues[model.name], bounded(), num_chars, num_tokens)
        except MunjangError:
            raise
        except Exception as error:
            raise Refused("model", f"{model.name} failed on this request; the server's log has more.") from error
        finally:
            self._times.pop(times.payload_id, None)
            times.tell(self.telemetry)

    async def read(self, steps: Steps[T], inputs: Inputs) -> T:
        """Run steps that read texts, or rows of token ids, without a model."""
        return await self.batcher.read(steps, sum(map(len, inputs)), self.queue_limits.deadline_s)

    def queue_sizes(self) -> dict[str, int]:
        """Count the requests that wait or are computed, by model."""
        return {name: queue.num_inside for name, queue in self.batcher.queues.items()}

    async def put_documents(
        self,
        view: View,
        texts: Sequence[str],
        ids: Sequence[str | None],
        metadata: Sequence[Metadata],
        sections: Sequence[Sequence[Section]] | None = None,
    ) -> tuple[list[str], "Usage"]:
        """Upsert documents; those without an id get a hash of their content, and equal ones of these are one.

        They are cut in a thread, and the batcher computes their vectors among the requests of others. Nothing is
        stored before all is computed; then a few are at a time, so that searches get their turn. Returns their ids.
        """
        writing = view.writing(texts, ids, metadata, sections)
        await view.run(partial(view.refuse_taken, writing.ids))
        num_chars, model = sum(map(len, texts)), self.model_of(view.served)
        cut = await self.batcher.read(view.cut(writing), num_chars, self.queue_limits.deadline_s)
        asked = Embedding(role="document")
        num_tokens = expected_tokens(cut.texts, model.max_length)
        prepare = model.prepare(cut.texts, asked)
        payload, rows = await self._compute(model, num_chars, num_tokens, "documents", prepare)
        vectors = model.finish(rows, asked)
        for first, stop in cut.parts(WRITE_PASSAGES):
            await view.run(partial(view.put, cut.part(first, stop), vectors[first:stop]))
        return writing.all_ids, Usage(model.name, len(texts), int(sum(payload.tokens)), ())

    def view(self, request: Request, name: str | None) -> View:
        """Return what the request's key sees of an index: the one of this name, or the first that it may use."""
        key: Key = request.state.key
        by_name = {served.name: served for served in self.visible_indexes(key)}
        if not by_name:
            whose = " for this key" if key.indexes else "; start it with --index"
            raise Refused("not_found", f"This server has no index{whose}.")
        if name is not None and name not in by_name:
            message = f"This server has no index of that name for you; choose from {', '.join(by_name)}."
            raise Refused("not_found", message, param="index")
        return View(next(iter(by_name.values())) if name is None else by_name[name], key)

    def visible_indexes(self, key: Key) -> list[ServedIndex]:
        """Return the indexes that a key may use."""
        return [served for served in self.indexes if not key.indexes or served.name in key.indexes]

    def model_of(self, served: ServedIndex) -> Embedder:
        """Return the model of an index."""
        return next(embedder for embedder in self.embedders if embedder.model is served.index.model)

    async def close(self) -> None:
        """Finish the requests that are here, then close."""
        self.is_ready = False
        await self.batcher.drain()
        for close in (self.answers.close, *self.on_close, *(served.close for served in self.indexes)):
            close()

    def _count(self, queue: ModelQueue, batch: Sequence[Slice], seconds: float) -> None:
        num_units = sum(part.end - part.start for part in batch)
        self.metrics.count("te_embed_count", num_units, model=queue.name)
        self.metrics.count("te_batch_count", model=queue.name)
        self.metrics.observe("te_batch_next_size", num_units, model=queue.name)
        self.metrics.observe("te_batch_next_tokens", sum(part.num_tokens for part in batch), model=queue.name)
        self.metrics.observe("te_request_inference_duration", seconds, model=queue.name)
        for part in batch if self.telemetry.is_on else ():
            if (times := self._times.get(id(part.request.payload))) is not None:
                times.computed(seconds)


@dataclass(frozen=True)
class Usage:
    """The usage of a request, for its answer and the log."""

    model: str
    num_texts: int
    num_tokens: int
    cut_rows: Sequence[int]  # the texts that were too long

    def note(self, request: Request) -> None:
        """Tell the log, and the header of the answer."""
        before = request.state.facts.get("tokens", 0)  # of a search: the query's, then the re-ranker's
        request.state.facts |= {"model": self.model, "texts": self.num_texts, "tokens": before + self.num_tokens}
        if self.cut_rows:
            request.state.facts["cut"] = len(self.cut_rows)
            request.state.cut_rows = self.cut_rows


async def while_connected(request: Request, answer: Coroutine[Any, Any, T]) -> T:
    """Await an answer; cancel it when the client goes away first."""
    working, watching = asyncio.ensure_future(answer), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        watching.cancel()


async def _disconnected(request: Request) -> None:
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
