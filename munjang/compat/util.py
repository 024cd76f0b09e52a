"""util of sentence-transformers: similarities, semantic search, quantization, and small helpers over tensors."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from munjang.compat import gaps
from munjang.compat.environment import (
    LoggingHandler,
    check_package_availability,
    disable_logging,
    fullname,
    get_rank,
    get_world_size,
    http_get,
    import_from_string,
    is_accelerate_available,
    is_datasets_available,
    is_dist_initialized,
    is_training_available,
)
from munjang.compat.quantization import quantize_embeddings
from munjang.compat.retrieval import (
    community_detection,
    information_retrieval,
    paraphrase_mining,
    paraphrase_mining_embeddings,
    semantic_search,
)
from munjang.compat.similarity_functions import (
    SimilarityFunction,
    cos_sim,
    dot_score,
    euclidean_sim,
    manhattan_sim,
    pairwise_angle_sim,
    pairwise_cos_sim,
    pairwise_dot_score,
    pairwise_euclidean_sim,
    pairwise_manhattan_sim,
    pytorch_cos_sim,
    unit,
)
from munjang.engine.devices import pick_device

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
    "http_get",
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


if not TYPE_CHECKING:

    def __getattr__(name):
        raise gaps.missing_name("munjang.compat.util", name)
