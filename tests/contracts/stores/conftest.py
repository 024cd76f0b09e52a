"""Every engine in turn. One that isn't installed, or has no server here, is skipped by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.stores.engines import ENGINES, Place


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = Place(request.param, tmp_path)
    yield place
    for store in place.opened:
        store.close()
