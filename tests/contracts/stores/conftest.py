"""Every engine in turn. One that isn't installed, or has no server here, is skipped by name."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.stores.engines import ENGINES, Place


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    engine = ENGINES[request.param]
    try:
        importlib.import_module(engine.package)
    except ImportError:
        pytest.skip(f"{request.param}: {engine.package} is not installed")
    place = Place(engine, engine.location(tmp_path))
    yield place
    for store in place.opened:
        store.close()
