"""Compare only vectors of neighbouring cells, where all would take hours.    A and B rows, D dimension, K cells.

The vectors of one side are put into the cells of some of them, and each vector of the other meets the members of the
cells whose centres are nearest to it. Centres are vectors by chance, not those of k-means: where there are many vectors
there are many centres, so cells are of like size. K-means spends its centres on what lies far out: of two million
vectors it left 314 billion pairs with 16 looks, where these leave 225 with 32 (docs/log.md). Not faiss: these
are the same tiles, bounds and devices as in the exact search, a pair is found from either of its ends, and a threshold
can be searched for instead of a number of neighbours.
"""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from munjang.tasks.paraphrases.scan import GPU_TILE_SHAPE, TILE_SHAPE, Part, Plan
from munjang.types import Bools, Ids, Ints

NUM_PROBES = 32  # cells that a vector looks into
BLOCK_ROWS = 16_384  # vectors whose cells are found at once


def cell_tiles(a: Tensor, b: Tensor, num_probes: int = NUM_PROBES) -> Plan:
    """Plan a tile for every cell: the vectors of `a` that look into it, and the vectors of `b` in it."""
    num_cells = max(1, min(2 ** round(math.log2(1.5 * math.sqrt(len(b)))), len(b)))
    chosen = np.random.default_rng(0).permutation(len(b))[:num_cells]
    centres_KD = torch.unique(b[torch.from_numpy(np.sort(chosen)).to(b.device)], dim=0)
    num_cells, num_probes = len(centres_KD), min(num_probes, len(centres_KD))
    looks_AP = _nearest(a, centres_KD, num_probes)
    home_B = looks_AP[:, 0] if a is b else _nearest(b, centres_KD, 1)[:, 0]
    members, first_member = _by_cell(home_B.astype(np.int64), num_cells)
    lookers, first_looker = _by_cell(looks_AP.reshape(-1).astype(np.int64), num_cells)
    lookers //= num_probes
    height, breadth = TILE_SHAPE.get(a.device.type, GPU_TILE_SHAPE)

    def tiles() -> Iterator[tuple[Part, Part]]:
        for cell in range(num_cells):
            inside = torch.from_numpy(members[first_member[cell] : first_member[cell + 1]])
            outside = torch.from_numpy(lookers[first_looker[cell] : first_looker[cell + 1]])
            for rows in torch.split(outside, height):
                for columns in torch.split(inside, breadth):
                    yield rows, columns

    num_scores = int((np.diff(first_member) * np.diff(first_looker)).sum())

    def wanted(i: Ints, j: Ints) -> Bools:
        """Count a pair once, though it may be found from both of its ends."""
        is_found_there = (looks_AP[j] == home_B[i][:, None]).any(1)
        return (i < j) | ((i > j) & ~is_found_there)

    return Plan(tiles(), num_scores, wanted if a is b else None)


def _nearest(vectors: Tensor, centres_KD: Tensor, count: int) -> Ids:
    """Return the cells whose centres are nearest to each vector, by Euclidean distance."""
    half_K = (centres_KD * centres_KD).sum(1) / 2
    found = np.empty((len(vectors), count), np.int32)
    for start in range(0, len(vectors), BLOCK_ROWS):
        closeness = vectors[start : start + BLOCK_ROWS] @ centres_KD.T - half_K
        found[start : start + BLOCK_ROWS] = closeness.topk(count, dim=1).indices.cpu().numpy()
    return found


def _by_cell(cells: Ints, num_cells: int) -> tuple[Ints, Ints]:
    """Return rows in the order of their cells, and where each cell begins."""
    order = np.argsort(cells, kind="stable")
    return order, np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=num_cells))])
