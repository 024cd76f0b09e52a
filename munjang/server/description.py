"""The description of the API, /openapi.json: FastAPI's, with the names and sizes that the loaded models allow."""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from munjang.server.service import Service

PROMPTS, SIZES, INPUTS = ("prompt_name",), ("dimensions", "output_dimension"), ("inputs", "input", "ids")


def describe(app: FastAPI, service: Service) -> None:
    """Let an application describe what its models take; a value that one of several takes is allowed."""
    whole = app.openapi

    def narrowed() -> dict[str, Any]:
        if app.openapi_schema is None:
            properties = [*_properties(whole())]
            for choices, names, type in (
                (_sizes(service), SIZES, "integer"),
                (_prompts(service), PROMPTS, "string"),
            ):
                for name, schema in properties:
                    if name in names:
                        _allow(schema, type, choices)
            for name, schema in properties:
                if name in INPUTS:
                    _bound_ids(schema, _vocab_size(service) - 1)
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = narrowed  # type: ignore[method-assign]


def _properties(description: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for schema in description["components"]["schemas"].values():
        yield from schema.get("properties", {}).items()


def _sizes(service: Service) -> list[Any]:
    return sorted({size for each in service.embedders for size in (each.model.dimension, *each.dimensions)})


def _prompts(service: Service) -> list[Any]:
    roles = {"query", "document"} if service.beside else set()
    return sorted({name for each in service.embedders for name in each.model.prompts} | roles)


def _vocab_size(service: Service) -> int:
    tokenizers = [each.model.tokenizer for each in service.embedders]
    tokenizers += [each.scorer.tokenizer for each in service.rerankers]
    return max((tokenizer.vocab_size for tokenizer in tokenizers), default=1)


def _allow(schema: dict[str, Any], type: str, choices: list[Any]) -> None:
    """Name the choices of a value that may be null; without any it has to be."""
    kinds = [kind for kind in schema["anyOf"] if kind.get("type") != type]
    schema["anyOf"] = [*([{"type": type, "enum": choices}] if choices else []), *kinds]


def _bound_ids(schema: dict[str, Any], maximum: int) -> None:
    """Bound the token ids in lists of any depth."""
    for kind in schema.get("anyOf", [schema]):
        items = kind.get("items")
        if kind.get("type") == "array" and items is not None:
            if items.get("type") == "integer":
                items["maximum"] = maximum
            else:
                _bound_ids(items, maximum)
