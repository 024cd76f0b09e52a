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
class Entry:
    """A row of STORES."""

    store: str  # file and class, below munjang.stores; imported when a location asks for it
    scheme: str  # a pattern of what a location begins with; nothing: a folder
    locations: str  # as people write them, for messages and help
    package: str = "numpy"  # what it needs, and the extra that installs it
    extra: str = ""
    is_lasting: bool = True  # what was closed can be opened again


MILVUS = r"milvus(\+https?|-lite):"
STORES = {
    "LanceDB": Entry("lance.store.LanceStore", "", "a folder", "lancedb", "lance"),
    "memory": Entry("memory.store.MemoryStore", "memory:", "memory:", is_lasting=False),
    "PostgreSQL": Entry("postgres.store.PostgresStore", "postgres(ql)?:", "postgresql://...", "psycopg", "postgres"),
    "Milvus": Entry("milvus.store.MilvusStore", MILVUS, "milvus+http://..., milvus-lite:PATH", "pymilvus", "milvus"),
}
LOCATIONS = ", ".join(entry.locations for entry in STORES.values())
LASTING_LOCATIONS = ", ".join(entry.locations for entry in STORES.values() if entry.is_lasting)


def open_store(location: str, schema: "Schema | None", create: bool, name: str = "default") -> "Store":
    """Open the store at a location, which its beginning assigns to an engine of STORES.

    An existing store keeps its own schema; a given one has to agree with it. Where there is none, `create` makes one
    with the given schema. `name` tells several stores of one location apart.
    """
    found = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", location)  # two letters or more: C: is a drive
    scheme = found[0].lower() if found else ""
    for title, entry in STORES.items():
        if re.fullmatch(entry.scheme, scheme):
            if find_spec(entry.package) is None:
                raise MissingExtra(entry.package, entry.extra, f"A store in {title}")
            module, _, class_name = f"munjang.stores.{entry.store}".rpartition(".")
            store: Store = getattr(import_module(module), class_name).open(location, schema, create, name)
            return store
    raise unknown("kind of store", scheme, [entry.locations for entry in STORES.values()])
