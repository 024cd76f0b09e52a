"""Routes, a file for each API: its bodies and a function `routes(service)`. To add one: a file here, a line in APIS."""

from importlib import import_module

from fastapi import APIRouter

from munjang.server.service import Service

APIS = (
    "openai",
    "tei",
    "tokens",
    "cohere",
    "search",
    "documents",
    "files",
    "keys",
    "similarities",
    "map",
    "page",
)


def all_routes(service: Service) -> list[APIRouter]:
    """Make the routes of every API over a service."""
    return [import_module(f"munjang.server.routes.{name}").routes(service) for name in APIS]
