"""Load what a server is asked to serve, and what changed alone when it is asked again."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.index import Index
from munjang.model import LoadedModel
from munjang.multi_vector_encoder import MultiVectorEncoder
from munjang.server.beside import BesideEmbedder
from munjang.server.reranker import Reranker
from munjang.server.views import ServedIndex
from munjang.sparse_encoder import SparseEncoder
from munjang.stores.base import NoSuchStore


@dataclass(frozen=True)
class Where:
    """The device, dtype and threads that models are loaded for."""

    device: str | None = None
    dtype: str | None = None
    threads: int | None = None


@dataclass
class Loader:
    """Loads parts by name. Those of the load before are taken again where nothing about them has changed."""

    parts: dict[Any, Any] = field(default_factory=dict)
    _used: dict[Any, Any] = field(default_factory=dict)

    def embedders(self, given: Sequence[str], where: Where) -> list[tuple[str, BiEncoder]]:
        """Load bi-encoders, each given as NAME=PATH or as a path."""
        return [(name, self._model(BiEncoder, path, where)) for name, path in map(named, given)]

    def rerankers(self, given: Sequence[str], where: Where) -> list[Reranker]:
        """Load cross-encoders, given in the same way."""
        return [Reranker(name, self._model(CrossEncoder, path, where)) for name, path in map(named, given)]

    def indexes(
        self, given: Sequence[str], names: Sequence[str], models: list[tuple[str, BiEncoder]], where: Where
    ) -> list[ServedIndex]:
        """Open indexes; one that was made with none of these models brings its own, which is added to them.

        `names`: of each index at its place, or one for all.
        """
        if given and len(names) not in (1, len(given)):
            raise InputError(f"{len(given)} indexes and {len(names)} names: give one --index-name, or one for each.")
        served = []
        for number, place in enumerate(given):
            inner = names[number % len(names)]
            one = self._index(*named_index(place, inner), inner, models, where)
            if not any(model is one.index.model for _, model in models):
                models.append((_new_name(one.index.model, models), one.index.model))
            served.append(one)
        return served

    def beside(
        self, sparse: Sequence[str], late: Sequence[str], indexes: Sequence[ServedIndex], where: Where
    ) -> list[BesideEmbedder]:
        """Load models of sparse and token vectors, given as NAME=PATH, and add those that indexes search with."""
        kinds: tuple[tuple[Any, Sequence[str]], ...] = ((SparseEncoder, sparse), (MultiVectorEncoder, late))
        found = [(name, self._model(kind, path, where)) for kind, given in kinds for name, path in map(named, given)]
        for model in (model for served in indexes for model in served.index.encoders.others):
            if not any(model.fingerprint == known.fingerprint for _, known in found):
                found.append((_new_name(model, found), model))
        return [BesideEmbedder(name, model) for name, model in found]

    def keep(self) -> None:
        """Take over what this load has used, for the next one."""
        self.parts, self._used = self._used, {}

    def forget(self) -> None:
        """Give up a load that failed, and close what it alone has opened."""
        for key, part in self._used.items():
            if key not in self.parts and isinstance(part, ServedIndex):
                part.close()
        self._used = {}

    def _model(self, kind: Any, path: str, where: Where) -> Any:
        def load() -> Any:
            return kind.load(path, device=where.device, dtype=where.dtype, threads=where.threads)

        return self._part((kind, path, where, _stamp(path)), load)

    def _index(
        self, name: str, place: str, inner: str, models: Sequence[tuple[str, BiEncoder]], where: Where
    ) -> ServedIndex:
        fingerprint = _fingerprint(place, inner)
        if fingerprint is None:  # a new one
            model = models[0][1] if models else None
        else:
            model = next((each for _, each in models if each.fingerprint == fingerprint), None)

        def load() -> ServedIndex:
            return ServedIndex(name, Index.open(place, model, inner, device=where.device))

        return self._part((ServedIndex, name, place, inner, fingerprint, id(model), where), load)

    def _part(self, key: Any, load: Callable[[], Any]) -> Any:
        if key not in self._used:
            self._used[key] = self.parts[key] if key in self.parts else load()
        return self._used[key]


def named(given: str) -> tuple[str, str]:
    """Split NAME=PATH; a path alone is named by its last part.

    >>> named("small=models/ko-en"), named("models/ko-en")
    (('small', 'models/ko-en'), ('ko-en', 'models/ko-en'))
    """
    name, sign, path = given.partition("=")
    if sign and name and path and "/" not in name:
        return name, path
    if not given or given.startswith("=") or (sign and not path):
        raise InputError(f"A model or index is given as NAME=PLACE or as a place, not {given!r}.")
    return Path(given).resolve().name, given


def named_index(given: str, inner: str) -> tuple[str, str]:
    """Split NAME=PLACE; an address alone, which may hold a password, is named by its index there.

    >>> named_index("wiki=postgresql://host/db", "default"), named_index("postgresql://me:secret@host/db", "notes")
    (('wiki', 'postgresql://host/db'), ('notes', 'postgresql://me:secret@host/db'))
    """
    name, place = named(given)
    is_address = place == given and (given.endswith(":") or "://" in given)
    return (inner, given) if is_address else (name, place)


def _stamp(path: str) -> Any:
    """Return when the files of a folder were changed; nothing for a name of a hub."""
    if not os.path.isdir(path):
        return None
    return tuple(sorted((entry.name, entry.stat().st_mtime_ns) for entry in os.scandir(path)))


def _fingerprint(place: str, inner: str) -> str | None:
    """Return the fingerprint of the model that an index was made with, if there is such an index."""
    try:
        store = Index.open_store(place, inner)
    except NoSuchStore:
        return None
    fingerprint: str = store.schema.facts["fingerprint"]
    store.close()
    return fingerprint


def _new_name(model: LoadedModel, models: Sequence[tuple[str, LoadedModel]]) -> str:
    known, name = {name for name, _ in models}, Path(model.model.folder).name
    return next(each for each in (name, *(f"{name}-{n}" for n in range(2, 1000))) if each not in known)
