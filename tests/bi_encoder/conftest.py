"""A tiny model, and the vectors of its texts one by one."""

from pathlib import Path

import numpy as np
import pytest

from munjang import BiEncoder
from tests.bi_encoder.given import TEXTS


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert)


@pytest.fixture(scope="module")
def vectors(model: BiEncoder) -> np.ndarray:
    return np.stack([model.encode(text) for text in TEXTS])
