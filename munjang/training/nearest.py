"""The nearest rows of one matrix for each row of another, exactly and in blocks.

Q queries, C candidates, D width, K best. Never more than `SCORES` scores at once, whatever Q and C are.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from munjang.nn.threads import run_in_thread
from munjang.progress import Progress
from munjang.types import Floats, Ints
from munjang.vectors.similarity import unit

QUERIES = 2048  # rows of a block
SCORES = 1 << 25  # of a block: 134 MB

Score = Callable[[Tensor, Tensor], Tensor]
# The functions of vectors/similarity.py, on the device; cosine is dot, once the vectors have unit length.
SCORES_BY_NAME: dict[str, Score] = {
    "cosine": lambda a_QD, b_CD: a_QD @ b_CD.T,
    "dot": lambda a_QD, b_CD: a_QD @ b_CD.T,
    # without matmul: near neighbours are a small difference of large squares
    "euclidean": lambda a_QD, b_CD: -torch.cdist(a_QD, b_CD, compute_mode="donot_use_mm_for_euclid_dist"),
    "manhattan": lambda a_QD, b_CD: -torch.cdist(a_QD, b_CD, p=1.0),
}


def nearest(
    queries_QD: Floats,
    candidates_CD: Floats,
    num_best: int,
    name: str,
    excluded: tuple[Ints, Ints],
    device: torch.device,
    progress: bool | None = None,
) -> tuple[Floats, Ints]:
    """Scores and places of the best candidates of every query, best first; [Q, K] each.

    `excluded`: queries (ascending) and candidates that are not to be found together; where too few are left, the score
    is minus infinity.
    """
    num_best = min(num_best, len(candidates_CD))
    if name == "cosine":
        queries_QD, candidates_CD = unit(queries_QD), unit(candidates_CD)
    scores_QK = np.empty((len(queries_QD), num_best), np.float32)
    places_QK = np.empty((len(queries_QD), num_best), np.int64)

    def search() -> None:
        with Progress(len(queries_QD), "searching", enabled=progress) as shown, torch.inference_mode():
            for start in range(0, len(queries_QD), QUERIES):
                rows = slice(start, start + QUERIES)
                near, far = np.searchsorted(excluded[0], [start, start + QUERIES])
                pairs = (excluded[0][near:far] - start, excluded[1][near:far])
                block_QD = torch.from_numpy(queries_QD[rows]).to(device)
                best, at = _best(block_QD, candidates_CD, num_best, SCORES_BY_NAME[name], pairs)
                scores_QK[rows], places_QK[rows] = best.cpu().numpy(), at.cpu().numpy()
                shown.advance(len(block_QD))

    run_in_thread(search)
    return scores_QK, places_QK


def _best(
    queries_QD: Tensor, candidates_CD: Floats, num_best: int, score: Score, excluded: tuple[Ints, Ints]
) -> tuple[Tensor, Tensor]:
    """For one block of queries: the best so far against the best of each block of candidates."""
    device = queries_QD.device
    scores_QK = torch.empty(len(queries_QD), 0, device=device)
    places_QK = torch.empty(len(queries_QD), 0, dtype=torch.int64, device=device)
    step = max(SCORES // max(len(queries_QD), 1), num_best)
    for start in range(0, len(candidates_CD), step):
        block_CD = torch.from_numpy(candidates_CD[start : start + step]).to(device)
        scores_QC = score(queries_QD, block_CD)
        inside = (excluded[1] >= start) & (excluded[1] < start + step)
        rows, columns = (torch.from_numpy(side[inside]).to(device) for side in excluded)
        scores_QC[rows, columns - start] = -torch.inf
        block_QK, at_QK = scores_QC.topk(min(num_best, len(block_CD)), dim=1)
        scores_QK, places_QK = torch.cat([scores_QK, block_QK], 1), torch.cat([places_QK, at_QK + start], 1)
        scores_QK, order_QK = scores_QK.topk(min(num_best, scores_QK.shape[1]), dim=1)
        places_QK = places_QK.gather(1, order_QK)
    return scores_QK, places_QK
