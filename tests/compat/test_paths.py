"""Modules of sentence-transformers by their own paths."""

from importlib import import_module

import pytest

import munjang.compat
from munjang.compat.paths import FILE_OF_PATH


@pytest.mark.parametrize("path", FILE_OF_PATH)
def test_every_path_is_the_file_that_stands_for_it(path):
    module = import_module(f"munjang.compat.{path}")
    assert module is import_module(f"munjang.compat.{FILE_OF_PATH[path]}")
    assert module.__spec__.name == f"munjang.compat.{FILE_OF_PATH[path]}"


def test_a_module_does_not_take_the_place_of_a_class():
    from munjang.compat.cross_encoder.CrossEncoder import CrossEncoder
    from munjang.compat.SentenceTransformer import SentenceTransformer

    assert munjang.compat.SentenceTransformer is SentenceTransformer
    assert munjang.compat.CrossEncoder is CrossEncoder


def test_the_version_is_that_of_the_incumbent():
    sentence_transformers = pytest.importorskip("sentence_transformers")
    assert munjang.compat.__version__ == sentence_transformers.__version__
