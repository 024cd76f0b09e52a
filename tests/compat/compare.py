"""Compare results of both imports: type, dtype, shape and values."""

from typing import Any

import numpy as np
import torch


def assert_same(ours: Any, theirs: Any, tolerance: float = 2e-5) -> None:
    """Equal in everything; floats up to a share of the largest one."""
    assert type(ours) is type(theirs), f"{type(ours)} is not {type(theirs)}"
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key], tolerance)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert_same(mine, other, tolerance)
    elif isinstance(theirs, (torch.Tensor, np.ndarray, np.generic)):
        assert ours.dtype == theirs.dtype
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert_close(ours, theirs, tolerance)
    elif isinstance(theirs, float):
        assert_close(ours, theirs, tolerance)
    else:
        assert ours == theirs


def assert_same_for_each(options: dict[str, dict[str, Any]], ours: Any, theirs: Any, inputs: Any) -> None:
    """Both functions give the same for the inputs with each of the options; names all with which they don't."""
    different = {}
    for name, each in options.items():
        try:
            assert_same(ours(inputs, **each), theirs(inputs, **each))
        except AssertionError as error:
            different[name] = str(error)
    assert different == {}


def assert_close(ours: Any, theirs: Any, tolerance: float) -> None:
    """Floats within the tolerance, everything else equal."""
    mine, other = as_array(ours), as_array(theirs)
    if other.dtype.kind in "iub":
        assert np.array_equal(mine, other)
    elif other.size:
        scale = max(float(np.abs(other).max()), 1.0)
        assert float(np.abs(mine.astype(np.float64) - other).max()) <= tolerance * scale


def as_array(value: Any) -> Any:
    """As numpy, which has no bfloat16."""
    if isinstance(value, torch.Tensor):
        return (value.float() if value.dtype == torch.bfloat16 else value).cpu().numpy()
    return np.asarray(value)
