"""Tiles: where scores reach a floor, in every type; errors end the search."""

import numpy as np
import pytest
import torch

from munjang.errors import InputError
from munjang.tasks.paraphrases.bounds import Bounds, exact
from munjang.tasks.paraphrases.scan import Room, all_tiles, scan
from munjang.types import Floats, Ints
from munjang.vectors.similarity import unit
from tests.tasks.paraphrases.test_mining import near


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("floor", [0.5, 0.0, -0.25])
def test_places(dtype: torch.dtype, floor: float) -> None:
    scores = torch.tensor([[0.5, -0.5, 0.75], [0.25, -0.0, 1.0]]).to(dtype)
    expected = [place for place, score in enumerate(scores.reshape(-1).tolist()) if score >= floor]
    assert Room(scores).places(scores, floor).tolist() == expected


class Kept:
    def __init__(self, floor: float, limit: int) -> None:
        self.floor, self.limit, self.pairs = floor, limit, set[tuple[int, int]]()

    def add(self, rows_P: Ints, columns_P: Ints, scores_P: Floats) -> None:
        self.pairs |= set(zip(rows_P.tolist(), columns_P.tolist(), strict=True))
        if len(self.pairs) > self.limit:
            raise InputError("too many")


def test_a_crowded_tile_is_computed_in_full() -> None:
    vectors = torch.from_numpy(unit(near(100)))
    loose = Bounds(vectors[:, :1].abs() + 1, vectors[:, :1].abs() + 1, 0.0, False)  # lets everything through
    sink = Kept(0.5, 10**6)
    scan(vectors, vectors, loose, all_tiles(100, 100, True, vectors.device), sink)
    rows, columns = np.nonzero(np.triu((vectors @ vectors.T).numpy() >= 0.5, 1))
    assert sink.pairs == set(zip(rows.tolist(), columns.tolist(), strict=True))


def test_an_error_ends_all_threads() -> None:
    vectors = torch.from_numpy(unit(near(3000)))
    with pytest.raises(InputError, match="too many"):
        scan(vectors, vectors, exact(vectors, vectors), all_tiles(3000, 3000, True, vectors.device), Kept(-1, 10))
