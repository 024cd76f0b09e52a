"""Tiny cross-encoders of one label and of three."""

from collections.abc import Callable
from pathlib import Path

import pytest

from munjang import CrossEncoder


@pytest.fixture(scope="module")
def scorer(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="classifier", num_labels=1))


@pytest.fixture(scope="module")
def labels(make: Callable[..., Path]) -> CrossEncoder:
    return CrossEncoder.load(make("bert", kind="classifier", num_labels=3))
