"""Every `>>>` of the package is run. The bundled models are loaded once for all examples."""

import doctest
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from munjang import BiEncoder, CrossEncoder, MultiVectorEncoder
from tests.token_models import make_splade

PACKAGE = Path(__file__).parents[1] / "munjang"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.fixture(scope="module", autouse=True)
def _loaded_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for model, way in ((BiEncoder, "load"), (CrossEncoder, "load"), (MultiVectorEncoder, "create")):
            patch.setattr(model, way, cache(getattr(model, way)))
        yield


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model, which stands for the one at path/to/splade: no sparse model is bundled."""
    return make_splade(tmp_path_factory.mktemp("sparse") / "splade")


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_examples_are_true(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    if "path/to/splade" in path.read_text(encoding="utf-8"):
        Path("path/to").mkdir(parents=True)
        Path("path/to/splade").symlink_to(request.getfixturevalue("splade"))
    failed, tried = doctest.testmod(importlib.import_module(module_name(path)), optionflags=FLAGS)
    assert tried, f"{path} shows an example where doctest finds none"
    assert not failed
