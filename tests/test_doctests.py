"""Every `>>>` of the package is run. The bundled models are loaded once for all examples."""

import doctest
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from munjang import BiEncoder, CrossEncoder

PACKAGE = Path(__file__).parents[1] / "munjang"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="module", autouse=True)
def _loaded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for model in (BiEncoder, CrossEncoder):
            patch.setattr(model, "load", cache(model.load))
        yield


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_examples_are_true(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    failed, tried = doctest.testmod(importlib.import_module(module_name(path)), optionflags=FLAGS)
    assert tried, f"{path} shows an example where doctest finds none"
    assert not failed
