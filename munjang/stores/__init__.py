"""Stores: ids, vectors, texts and metadata on existing engines. A store never sees a model."""

import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from munjang.errors import MissingExtra, unknown

if TYPE_CHECKING:
    from munjang.stores.base import Schema, Store


@dataclass(frozen=True)
class Engine:
    """A row of STORES."""

    store: str  # file and class, below munjang.stores; imported when a location asks for it
    scheme: str  # a pattern of what a location begins with; nothing: a folder
    locations: str  # as people write them, for messages and help
    package: str = "numpy"  # what it needs, and the extra that installs it
    extra: str = ""
    is_lasting: bool = True  # what was closed can be opened again


MILVUS = r"milvus(\+https?|-lite):"
STORES = {
    "LanceDB": Engine("lance.store.LanceStore", "", "a folder", "lancedb", "lance"),
    "memory": Engine("memory.store.MemoryStore", "memory:", "memory:", is_lasting=False),
    "PostgreSQL": Engine("postgres.store.PostgresStore", "postgres(ql)?:", "postgresql://...", "psycopg", "postgres"),
    "Milvus": Engine("milvus.store.MilvusStore", MILVUS, "milvus+http://..., milvus-lite:PATH", "pymilvus", "milvus"),
}
LOCATIONS = ", ".join(engine.locations for engine in STORES.values())
LASTING_LOCATIONS = ", ".join(engine.locations for engine in STORES.values() if engine.is_lasting)


def open_store(location: str, schema: "Schema | None", create: bool, name: str = "default") -> "Store":
    """Open the store at a location, which its beginning assigns to an engine of STORES.

    An existing store keeps its own schema; a given one has to agree with it. Where there is none, `create` makes one
    with the given schema. `name` tells several stores of one location apart.
    """
    found = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location)  # two letters or more: C: is a drive
    scheme = found[0].lower() if found else ""
    for title, engine in STORES.items():
        if re.fullmatch(engine.scheme, scheme):
            if find_spec(engine.package) is None:
                raise MissingExtra(engine.package, engine.extra, f"A store in {title}")
            module, _, class_name = f"munjang.stores.{engine.store}".rpartition(".")
            store: Store = getattr(import_module(module), class_name).open(location, schema, create, name)
            return store
    raise unknown("kind of store", scheme, [engine.locations for engine in STORES.values()])
