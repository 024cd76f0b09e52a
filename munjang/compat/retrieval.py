"""Search, mining and communities of sentence-transformers, over tasks/: the same results, sooner, in less memory."""

import heapq
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.compat.similarity_functions import as_rows, as_tensor, cos_sim, dot_score, unit
from munjang.errors import InputError
from munjang.tasks.cluster.community import communities
from munjang.tasks.paraphrases.mining import mine, pairs_of_neighbours
from munjang.tasks.vectors import unit_vectors
from munjang.vectors.nearest import Neighbours, nearest_in_blocks
from munjang.vectors.similarity import check_vectors

Score = Callable[[Tensor, Tensor], Tensor]


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


def paraphrase_mining(
    model: Any,
    sentences: list[str],
    show_progress_bar: bool = False,
    batch_size: int = 32,
    query_chunk_size: int = 5000,
    corpus_chunk_size: int = 100000,
    max_pairs: int = 500000,
    top_k: int = 100,
    score_function: Score = cos_sim,
    truncate_dim: int | None = None,
    prompt_name: str | None = None,
    prompt: str | None = None,
) -> list[list[float | int]]:
    """The most similar pairs of sentences, best first, as [score, i, j]; see `paraphrase_mining_embeddings`."""
    embeddings = model.encode(
        sentences,
        show_progress_bar=show_progress_bar,
        batch_size=batch_size,
        convert_to_tensor=True,
        truncate_dim=truncate_dim,
        prompt_name=prompt_name,
        prompt=prompt,
    )
    chunks = (query_chunk_size, corpus_chunk_size)
    return _mined(embeddings, chunks, max_pairs, top_k, score_function, show_progress_bar)


def paraphrase_mining_embeddings(
    embeddings: Any,
    query_chunk_size: int = 5000,
    corpus_chunk_size: int = 100000,
    max_pairs: int = 500000,
    top_k: int = 100,
    score_function: Score = cos_sim,
) -> list[list[float | int]]:
    """The most similar pairs of embeddings, best first, as [score, i, j] with i < j.

    A pair counts if it is among the `top_k` of one of its sentences. The chunk sizes bound the memory of functions
    other than cos_sim and dot_score, and change no result. Of pairs with equal scores others may be taken than there.
    """
    return _mined(embeddings, (query_chunk_size, corpus_chunk_size), max_pairs, top_k, score_function, False)


def _mined(
    embeddings: Any, chunks: tuple[int, int], max_pairs: int, top_k: int, score_function: Score, progress: bool
) -> list[list[float | int]]:
    if min(*chunks, max_pairs, top_k) < 1:
        raise InputError("query_chunk_size, corpus_chunk_size, max_pairs and top_k must be at least 1.")
    if len(embeddings) < 2:
        return []
    vectors = as_rows(as_tensor(embeddings)).detach()
    name = getattr(score_function, "__name__", "")
    if name in (cos_sim.__name__, "pytorch_cos_sim", dot_score.__name__):  # theirs are the same functions
        rows_ND = vectors.float().cpu().numpy()
        is_dot = name == dot_score.__name__
        rows_ND = check_vectors(rows_ND, "embeddings") if is_dot else unit_vectors(rows_ND, what="embeddings")
        found = mine(np.ascontiguousarray(rows_ND), None, max_pairs, None, top_k, True, str(vectors.device), progress)
    else:
        own = np.arange(len(vectors))  # no pair
        blocks = torch.split(vectors, chunks[1])
        scores, rows = nearest_in_blocks(vectors, blocks, top_k, score_function, (own, own), chunks[0])
        neighbours = Neighbours(scores.detach().float().cpu().numpy(), rows.cpu().numpy())
        found = pairs_of_neighbours([neighbours], len(vectors), max_pairs)
    return [list(pair) for pair in found]


def community_detection(
    embeddings: Any,
    threshold: float = 0.75,
    min_community_size: int = 10,
    batch_size: int = 1024,
    show_progress_bar: bool = False,
) -> list[list[int]]:
    """Groups of embeddings whose cosine with a central one is at least the threshold, the largest first.

    The central one comes first in each. The tiles are as large as suits the machine, whatever `batch_size` is.
    """
    if len(embeddings) == 0:
        return []
    vectors = as_rows(as_tensor(embeddings))
    if len(vectors) < min_community_size:
        return []
    return communities(
        vectors,
        threshold=float(threshold),
        min_size=min_community_size,
        is_exact=True,
        device=str(vectors.device),
        progress=show_progress_bar,
    )
