"""Find candidates by looking at every row, on a GPU.    N rows, Q queries, D dimension, C candidates.

As in exact.py, but the vectors are copied once and stay there until rows are added.
"""

import sys
import threading
from typing import Any

import numpy as np

from munjang.stores.exact import rank_scores, slack
from munjang.types import Array, Floats, Ints
from munjang.vectors.nearest import nearest_in_blocks
from munjang.vectors.similarity import unit

MIN_ROWS = 20_000  # below, a CPU takes a few milliseconds
BLOCK_SCORES = 1 << 28  # of one block: 1 GB
NUM_EXTRA_CANDIDATES = 32  # beyond k


class OnGpu:
    """A copy of the vectors of one store on the GPU, if there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._source: Any = None  # the array that was copied; held, so that no other one gets its address
        self._vectors: Any = None

    def candidates(
        self, queries_QD: Floats, vectors_ND: Array, lengths_N: Floats, rows: Ints, k: int, metric: str
    ) -> list[Ints] | None:
        """Do as exact.candidates; None where that has to do it: no GPU, few rows, or too many of equal score."""
        torch: Any = sys.modules.get("torch")  # who didn't load it has no model on a GPU either
        device = None if torch is None or len(rows) < MIN_ROWS or not len(queries_QD) else _device(torch)
        if device is None:
            return None
        with self._lock:
            vectors = self._copied(torch, vectors_ND, device)
            if vectors is None:
                return None
            return _candidates(torch, queries_QD, vectors, lengths_N, rows, k, metric)

    def _copied(self, torch: Any, vectors_ND: Array, device: Any) -> Any:
        source = vectors_ND if vectors_ND.base is None else vectors_ND.base
        if self._source is not source or len(self._vectors) != len(vectors_ND):
            self._source = self._vectors = None
            if device.type == "cuda" and 2 * vectors_ND.nbytes + 8 * BLOCK_SCORES > torch.cuda.mem_get_info()[0]:
                return None
            self._source, self._vectors = source, torch.from_numpy(vectors_ND).to(device)
        return self._vectors


def _device(torch: Any) -> Any:
    """Return the device to compute on; None: not by torch. With TF32 candidates would get lost."""
    is_precise = torch.get_float32_matmul_precision() == "highest"
    return torch.device("cuda") if is_precise and torch.cuda.is_available() else None


def _candidates(
    torch: Any, queries_QD: Floats, vectors_ND: Any, lengths_N: Floats, rows: Ints, k: int, metric: str
) -> list[Ints] | None:
    slack_Q = slack(queries_QD, lengths_N, metric)
    queries = torch.from_numpy(unit(queries_QD) if metric == "cosine" else queries_QD).to(vectors_ND.device)
    lengths = torch.from_numpy(np.ascontiguousarray(lengths_N)).to(queries.device)
    is_all = len(rows) == len(lengths_N)
    chosen = None if is_all else torch.from_numpy(rows).to(queries.device)
    matrix = vectors_ND if chosen is None else vectors_ND[chosen]
    lengths = lengths if chosen is None else lengths[chosen]
    count = min(k + NUM_EXTRA_CANDIDATES, len(rows))

    def score(some_QD: Any, all_ND: Any) -> Any:
        return rank_scores(some_QD @ all_ND.float().T, lengths, metric)

    block_rows = max(BLOCK_SCORES // len(rows), 1)
    scores_QC, places_QC = nearest_in_blocks(queries, [matrix], count, score, block_rows=block_rows)
    scores = scores_QC.cpu().numpy()
    # Rows that were left out may be as close as the k-th: only reading on would tell.
    if count < len(rows) and (scores[:, k - 1] - scores[:, -1] <= slack_Q).any():
        return None
    return [rows[places] for places in places_QC.cpu().numpy()]
