"""Stores: ids, vectors, texts and metadata on existing engines. A store never sees a model."""

import re
from importlib import import_module

from munjang.errors import unknown
from munjang.stores.base import Schema, Store

# How a location begins -> the module, imported when it is used, and its class. One without a prefix is a folder.
STORES: dict[str, tuple[str, str]] = {
    "": ("munjang.stores.lance", "LanceStore"),
    "memory:": ("munjang.stores.memory", "MemoryStore"),
    "postgresql:": ("munjang.stores.postgres", "PostgresStore"),
    "postgres:": ("munjang.stores.postgres", "PostgresStore"),
    "milvus+http:": ("munjang.stores.milvus", "MilvusStore"),
    "milvus+https:": ("munjang.stores.milvus", "MilvusStore"),
    "milvus-lite:": ("munjang.stores.milvus", "MilvusStore"),
}


def open_store(location: str, schema: Schema | None, create: bool, name: str = "default") -> Store:
    """The store at a location: a folder, `memory:`, `postgresql://...`, `milvus+http://...`, `milvus-lite:PATH`.

    A store that is there keeps its own schema, and one that is given has to fit it. Where there is none, `create` makes
    one with the schema given. `name` tells several stores of one location apart.
    """
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location)  # two letters or more: C: is a drive
    prefix = scheme[0].lower() if scheme else ""
    if prefix not in STORES:
        known = [each or "a folder" for each in STORES]
        raise unknown("kind of store", prefix or "a folder", known)
    module, class_name = STORES[prefix]
    store: Store = getattr(import_module(module), class_name).open(location, schema, create, name)
    return store
