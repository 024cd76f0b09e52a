import sys
from pathlib import Path

import pytest

from munjang.errors import InputError, MissingExtra
from munjang.stores import open_store
from munjang.stores.base import Schema


def test_an_unknown_prefix_names_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"Unknown kind of store 'mysql:'; choose from .*memory:"):
        open_store("mysql://localhost/x", Schema(4), create=True)
    with pytest.raises(InputError, match="opened as 'memory:'"):
        open_store("memory:x", Schema(4), create=True)


def test_memory() -> None:
    store = open_store("memory:", Schema(4), create=True)
    assert store.count() == 0


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(MissingExtra, match=r"pip install 'munjang\[lance\]'"):
        open_store(str(tmp_path), Schema(4), create=True)
