"""More routes of text-embeddings-inference: POST /tokenize, /decode, /embed_all, /embed_sparse, and /predict."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field
from pydantic_core import to_json

from munjang.server.bodies import (
    NOT_EMPTY,
    FirstError,
    Flag,
    ForeignBody,
    Text,
    Texts,
    TokenIds,
    TokenRows,
    Tokens,
    as_inputs,
    new_router,
)
from munjang.server.embedder import Embedding
from munjang.server.errors import Refused
from munjang.server.limits import RequestLimits
from munjang.server.render import bracketed, listed, lists_of_vectors, written
from munjang.server.reranker import Scoring, sigmoid
from munjang.server.routes.tei import LEFT, Direction
from munjang.server.service import Service, while_connected
from munjang.server.steps import Steps, pieces
from munjang.text.tokenizer import Tokenizer
from munjang.types import Floats, Ids

TOKENS_AT_ONCE = 512  # that are written: a millisecond
PAIR: dict[str, Any] = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
PAIRS: dict[str, Any] = {"anyOf": [PAIR, {"type": "array", "items": PAIR, "minItems": 1}]}  # the route says it too
LABEL = "LABEL_0"  # a re-ranker has one label; most folders give it no name


class Tokenize(ForeignBody):
    """POST /tokenize."""

    inputs: Text | Texts
    add_special_tokens: Flag = True
    prompt_name: str | None = None
    model: str | None = None


class Decode(ForeignBody):
    """POST /decode."""

    ids: Tokens | Annotated[list[TokenIds], FirstError(), NOT_EMPTY]
    skip_special_tokens: Flag = True
    model: str | None = None


class EmbedAll(ForeignBody):
    """POST /embed_all: a vector for each token."""

    inputs: Text | Texts | Tokens | TokenRows
    truncate: Flag | None = None
    truncation_direction: Direction | None = None
    prompt_name: str | None = None
    model: str | None = None


class EmbedSparse(ForeignBody):
    """POST /embed_sparse: the dimensions and values that are not zero. `prompt_name`: document, or query."""

    inputs: Text | Texts
    truncate: Flag | None = None
    prompt_name: str | None = None
    model: str | None = None


class Predict(ForeignBody):
    """POST /predict: a pair of texts, or a list of pairs."""

    inputs: Annotated[Text | Texts | Annotated[list[Texts], FirstError()], Field(json_schema_extra=PAIRS)]
    truncate: Flag | None = None
    truncation_direction: Direction | None = None
    raw_scores: Flag = False
    model: str | None = None


def routes(service: Service) -> APIRouter:
    """Make the routes over a service."""
    router = new_router()

    def tokenizer_of(name: str | None) -> Tokenizer:
        by_name = {reranker.name: reranker.scorer.tokenizer for reranker in service.rerankers}
        if name in by_name or (name is None and not service.embedders):
            return by_name[name] if name is not None else service.reranker(None).scorer.tokenizer
        return service.embedder(name).model.tokenizer

    @router.post("/tokenize")
    async def tokenize(body: Tokenize) -> Response:
        texts, tokenizer = as_inputs(body.inputs), tokenizer_of(body.model)
        service.request_limits.check(texts, "inputs")
        if body.prompt_name is not None:
            prompt = service.embedder(body.model).prompt(Embedding(prompt_name=body.prompt_name))
            texts = [prompt + text for text in texts]
        rows = _rows(tokenizer, texts, body.add_special_tokens, service.request_limits)
        return Response(await service.read(rows, texts), media_type="application/json")

    @router.post("/decode")
    async def decode(body: Decode) -> Response:
        rows, tokenizer = as_inputs(body.ids), tokenizer_of(body.model)
        service.request_limits.check(rows, "ids")
        size = tokenizer.vocab_size
        for number, row in enumerate(rows):
            if not all(0 <= token < size for token in row):
                raise Refused("invalid", f"Row {number} holds ids outside the vocabulary: 0 to {size - 1}.", "ids")
        texts = _texts(tokenizer, rows, body.skip_special_tokens)
        return Response(await service.read(texts, rows), media_type="application/json")

    async def answered(texts: Sequence[Floats]) -> Response:
        num_numbers = sum(vectors.size for vectors in texts)
        content = await written(service.answers, lists_of_vectors(texts), num_numbers)
        return Response(content, media_type="application/json")

    @router.post("/embed_all")
    async def embed_all(request: Request, body: EmbedAll) -> Response:
        inputs = as_inputs(body.inputs)
        late = [each for each in service.beside if each.kind == "late" and body.model in (each.name, None)]
        if late and (body.model is not None or not service.embedders):
            asked_for = (late[0], inputs, body.prompt_name or "document", body.truncate is not False)
            texts, usage = await while_connected(request, service.embed_beside(*asked_for))
            usage.note(request)
            return await answered(texts)
        model = service.embedder(body.model)
        keeps_end = body.truncation_direction in LEFT
        asked = Embedding(prompt_name=body.prompt_name, truncate=body.truncate is not False, keeps_end=keeps_end)
        texts, usage = await while_connected(request, service.embed_tokens(model, inputs, asked, "inputs"))
        usage.note(request)
        return await answered(texts)

    @router.post("/embed_sparse")
    async def embed_sparse(request: Request, body: EmbedSparse) -> Response:
        inputs, model = as_inputs(body.inputs), service.beside_model(body.model, "sparse")
        asked = (model, inputs, body.prompt_name or "document", body.truncate is not False)
        vectors, usage = await while_connected(request, service.embed_beside(*asked))
        usage.note(request)
        num_numbers = sum(len(values) for _, values in vectors)
        content = await written(service.answers, listed(vectors, _sparse), num_numbers)
        return Response(content, media_type="application/json")

    @router.post("/predict")
    async def predict(request: Request, body: Predict) -> Response:
        model = service.reranker(body.model)
        is_batch = isinstance(body.inputs, list) and any(isinstance(each, list) for each in body.inputs)
        pairs: Any = body.inputs if is_batch else [body.inputs]
        service.request_limits.check(pairs, "inputs")
        if any(isinstance(pair, str) or len(pair) != 2 for pair in pairs):
            raise Refused("invalid", f"{model.name} scores pairs: send inputs as [text, text] or a list of these.")
        asked = Scoring(body.truncate is not False, body.truncation_direction in LEFT)
        logits, usage = await while_connected(request, service.score_pairs(model, pairs, "inputs", asked))
        usage.note(request)
        scores = logits if body.raw_scores else sigmoid(logits)
        answers = [[{"score": score, "label": LABEL}] for score in scores]
        return Response(to_json(answers if is_batch else answers[0]), media_type="application/json")

    return router


def _rows(tokenizer: Tokenizer, texts: list[str], has_special: bool, limits: RequestLimits) -> Steps[bytes]:
    """Tokenize whole texts, none of them cut, with the place of each token."""
    encoded, num_tokens = [], 0
    for part in pieces(texts):
        found = tokenizer.rust.encode_batch(texts[part], add_special_tokens=has_special and tokenizer.has_special)
        yield
        num_tokens += sum(map(len, found))
        limits.check_tokens(num_tokens, "inputs")
        for each in found:
            parts = zip(each.ids, each.tokens, each.special_tokens_mask, each.offsets, strict=True)
            groups = iter(lambda parts=parts: list(islice(parts, TOKENS_AT_ONCE)), [])  # type: ignore[misc]
            encoded.append((yield from listed(groups, _tokens)))
    return bracketed(encoded)


def _tokens(group: list[tuple[int, str, int, tuple[int, int]]]) -> bytes:
    """Encode tokens as members of a list, without its brackets."""
    members = [
        {"id": id, "text": text, "special": bool(is_special)}
        | ({"start": None, "stop": None} if is_special else {"start": start, "stop": stop})
        for id, text, is_special, (start, stop) in group
    ]
    return to_json(members)[1:-1]


def _texts(tokenizer: Tokenizer, rows: list[list[int]], skips_special: bool) -> Steps[bytes]:
    """Decode rows of ids."""
    texts: list[str] = []
    for part in pieces(rows):
        texts += tokenizer.rust.decode_batch(rows[part], skips_special)
        yield
    return (yield from listed(texts))


def _sparse(vector: tuple[Ids, Floats]) -> bytes:
    pairs = zip(vector[0].tolist(), vector[1].tolist(), strict=True)
    return to_json([{"index": index, "value": value} for index, value in pairs])
