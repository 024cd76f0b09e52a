"""Vectors in fewer bits: by hand, and the incumbent's codes for the same ranges."""

import numpy as np
import pytest
from sentence_transformers.util import quantize_embeddings

from munjang.errors import InputError
from munjang.vectors.precision import NEEDS_RANGES, PRECISIONS, check, measure, quantize

VECTORS = np.random.default_rng(0).normal(size=(40, 20)).astype(np.float32)
RANGES = measure(VECTORS[:30])  # the last ten reach beyond it
DTYPES = {"float32": "f4", "float16": "f2", "int8": "i1", "uint8": "u1", "binary": "i1", "ubinary": "u1"}


def test_by_hand() -> None:
    vectors = np.array([[-1.0, 0.0, 0.5, 1.0, 9.0, -9.0]], np.float32)
    ranges = np.array([[-1.0] * 6, [1.55] * 6], np.float32)  # a step is 0.01
    assert quantize(vectors, "uint8", ranges).tolist() == [[0, 100, 150, 200, 255, 0]]
    assert quantize(vectors, "int8", ranges).tolist() == [[-128, -28, 22, 72, 127, -128]]
    assert quantize(vectors, "ubinary", None).tolist() == [[0b00111000]]  # zero is not above zero
    assert quantize(vectors, "binary", None).tolist() == [[0b00111000 - 128]]
    assert quantize(vectors, "float16", None).tolist() == vectors.astype(np.float16).tolist()
    assert quantize(vectors, "float32", None) is vectors


@pytest.mark.parametrize("precision", PRECISIONS)
def test_like_the_incumbent(precision: str) -> None:
    """Since 6.2 it rounds down and clips as we do. float16 it does not have."""
    found = quantize(VECTORS, precision, RANGES)
    assert found.dtype == np.dtype(DTYPES[precision])
    if precision != "float16":
        theirs = quantize_embeddings(VECTORS, precision, ranges=RANGES)
        assert found.dtype == theirs.dtype
        assert np.array_equal(found, theirs)


def test_a_component_that_never_changes() -> None:
    vectors = np.array([[1.0, 0.5], [1.0, 0.7], [1.5, 0.6]], np.float32)
    ranges = measure(vectors[:2])
    for precision in NEEDS_RANGES:
        assert np.array_equal(quantize(vectors, precision, ranges), quantize_embeddings(vectors, precision, ranges))


def test_a_code_depends_on_its_vector_alone() -> None:
    whole = quantize(VECTORS, "int8", RANGES)
    assert np.array_equal(whole[5:6], quantize(VECTORS[5:6], "int8", RANGES))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_vectors(precision: str) -> None:
    found = quantize(VECTORS[:0], precision, RANGES)
    assert found.shape == (0, 3 if precision.endswith("binary") else 20)
    assert found.dtype == np.dtype(DTYPES[precision])


def test_ranges_of_wider_vectors_are_cut() -> None:
    assert np.array_equal(quantize(VECTORS[:, :8], "int8", RANGES), quantize(VECTORS, "int8", RANGES)[:, :8])


@pytest.mark.parametrize(
    ("precision", "ranges", "message"),
    [
        ("int4", RANGES, "Unknown precision 'int4'; choose from binary, .*Did you mean 'int8'"),
        ("int8", None, "precision='int8' needs the range of each component: call model.calibrate"),
        ("uint8", RANGES[:, :5], r"the shape \[2, 20\], not \[2, 5\]"),
        ("uint8", RANGES[0], r"the shape \[2, 20\], not \[20\]"),
        ("int8", RANGES[::-1], "smallest and the largest"),
        ("int8", RANGES * np.float32("nan"), "smallest and the largest"),
    ],
)
def test_refused_before_any_text_is_read(precision: str, ranges: np.ndarray | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(precision, ranges, 20)


def test_ranges_need_texts() -> None:
    with pytest.raises(InputError, match="at least two texts"):
        measure(VECTORS[:1])
    with pytest.raises(InputError, match="at least two texts"):
        measure(VECTORS[0])
    assert RANGES.shape == (2, 20)
    assert np.array_equal(RANGES[1], VECTORS[:30].max(0))
