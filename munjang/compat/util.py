"""util of sentence-transformers: similarities, semantic search, quantization, and small helpers over tensors."""

import heapq
import logging
import sys
from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from munjang.compat import gaps
from munjang.compat.environment import (
    check_package_availability,
    disable_logging,
    fullname,
    get_rank,
    get_world_size,
    import_from_string,
    is_accelerate_available,
    is_datasets_available,
    is_dist_initialized,
    is_training_available,
)
from munjang.compat.quantization import quantize_embeddings
from munjang.compat.retrieval import community_detection, paraphrase_mining, paraphrase_mining_embeddings
from munjang.compat.similarity_functions import (
    SimilarityFunction,
    as_floats,
    as_rows,
    as_tensor,
    cos_sim,
    dot_score,
    euclidean_sim,
    manhattan_sim,
    pairwise_cos_sim,
    pairwise_dot_score,
    pairwise_euclidean_sim,
    pairwise_manhattan_sim,
    unit,
)
from munjang.engine.devices import pick_device
from munjang.errors import InputError

__all__ = [
    "LoggingHandler",
    "SimilarityFunction",
    "batch_to_device",
    "check_package_availability",
    "community_detection",
    "cos_sim",
    "disable_logging",
    "dot_score",
    "euclidean_sim",
    "fullname",
    "get_device_name",
    "get_rank",
    "get_world_size",
    "import_from_string",
    "information_retrieval",
    "is_accelerate_available",
    "is_datasets_available",
    "is_dist_initialized",
    "is_training_available",
    "manhattan_sim",
    "normalize_embeddings",
    "pairwise_angle_sim",
    "pairwise_cos_sim",
    "pairwise_dot_score",
    "pairwise_euclidean_sim",
    "pairwise_manhattan_sim",
    "paraphrase_mining",
    "paraphrase_mining_embeddings",
    "pytorch_cos_sim",
    "quantize_embeddings",
    "semantic_search",
    "truncate_embeddings",
]

pytorch_cos_sim = cos_sim  # its name before 2.0


def semantic_search(
    query_embeddings: Any,
    corpus_embeddings: Any,
    query_chunk_size: int = 100,
    corpus_chunk_size: int = 500000,
    top_k: int = 10,
    score_function: Callable[[Tensor, Tensor], Tensor] = cos_sim,
) -> list[list[dict[str, int | float]]]:
    """The nearest embeddings of the corpus for each query, best first, as {"corpus_id", "score"}.

    The chunk sizes bound the memory and never change the scores. Equal scores come in the incumbent's order, that of
    its heaps, which is why this is not `nearest_in_blocks`.
    """
    if min(query_chunk_size, corpus_chunk_size, top_k) < 1:
        raise InputError("query_chunk_size, corpus_chunk_size and top_k must be at least 1.")
    corpus, queries = as_tensor(corpus_embeddings), as_tensor(query_embeddings)
    queries = (queries[None] if queries.ndim == 1 else queries).to(corpus.device)
    is_cosine = score_function is cos_sim
    if is_cosine:  # once, not in every chunk
        queries, score_function = unit(as_rows(queries)), dot_score
    best: list[list[tuple[float, int]]] = [[] for _ in range(len(queries))]  # a heap of the top_k of each query
    for start in range(0, len(corpus), corpus_chunk_size):
        part = corpus[start : start + corpus_chunk_size]
        part = unit(as_rows(part)) if is_cosine else part
        for first in range(0, len(queries), query_chunk_size):
            scores = score_function(queries[first : first + query_chunk_size], part)
            found, places = scores.topk(min(top_k, scores.shape[1]), sorted=False)
            rows = zip(found.tolist(), (places + start).tolist(), strict=True)
            for heap, hits in zip(best[first : first + query_chunk_size], rows, strict=True):
                for hit in zip(*hits, strict=True):
                    (heapq.heappush if len(heap) < top_k else heapq.heappushpop)(heap, hit)
    return [
        [{"corpus_id": place, "score": score} for score, place in sorted(heap, key=itemgetter(0), reverse=True)]
        for heap in best
    ]


information_retrieval = semantic_search  # its name before 2.0


def pairwise_angle_sim(x: Any, y: Any) -> Tensor:
    """The AnglE similarity of matching rows: |cosine + sine| of complex numbers whose parts are the two halves."""
    first, second = as_floats(x), as_floats(y)
    if first.shape[1] % 2:
        first, second = (torch.nn.functional.pad(side, (0, 1)) for side in (first, second))
    first, second = unit(first), unit(second)
    (real_x, imaginary_x), (real_y, imaginary_y) = first.chunk(2, dim=1), second.chunk(2, dim=1)
    cosines = (first * second).sum(1)
    return (cosines + (imaginary_x * real_y - real_x * imaginary_y).sum(1)).abs()


def normalize_embeddings(embeddings: Tensor) -> Tensor:
    """Embeddings of length one."""
    return unit(embeddings)


def truncate_embeddings(embeddings: Any, truncate_dim: int | None) -> Any:
    """The leading components of an array or tensor; None: all."""
    return embeddings[..., :truncate_dim]


def batch_to_device(batch: dict[str, Any], target_device: torch.device | str) -> dict[str, Any]:
    """Move the tensors of a batch to a device, in place."""
    for key, value in batch.items():
        batch[key] = value.to(target_device) if isinstance(value, Tensor) else value
    return batch


def get_device_name() -> str:
    """The device that a model is loaded on by default."""
    return str(pick_device(None))


class LoggingHandler(logging.StreamHandler[Any]):
    """Log lines on standard output."""

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(sys.stdout)
        self.setLevel(level)


if not TYPE_CHECKING:

    def __getattr__(name):
        raise gaps.missing_name("munjang.compat.util", name)
