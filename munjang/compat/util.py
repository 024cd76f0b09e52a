"""util of sentence-transformers: similarities, semantic search, quantization, and small helpers over tensors."""

import csv
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from munjang.compat import gaps
from munjang.compat.environment import (
    LoggingHandler,
    check_package_availability,
    check_version_requirements,
    disable_datasets_caching,
    disable_logging,
    fullname,
    get_device_name,
    get_rank,
    get_world_size,
    http_get,
    import_from_string,
    import_module_class,
    is_accelerate_available,
    is_datasets_available,
    is_dist_initialized,
    is_training_available,
)
from munjang.compat.hard_negatives import mine_hard_negatives
from munjang.compat.late import maxsim, maxsim_pairwise, mean_maxsim, mean_maxsim_pairwise
from munjang.compat.loading import ORIGINAL_TRANSFORMER_MODELS
from munjang.compat.lookups import resolve_ids
from munjang.compat.quantization import quantize_embeddings
from munjang.compat.renames import save_to_hub_args_decorator
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
from munjang.compat.similarity_functions import as_floats as _convert_to_float_tensor
from munjang.compat.similarity_functions import as_rows as _convert_to_batch_tensor
from munjang.compat.similarity_functions import as_tensor as _convert_to_tensor
from munjang.errors import InputError

__all__ = [
    "ORIGINAL_TRANSFORMER_MODELS",
    "LoggingHandler",
    "SimilarityFunction",
    "_convert_to_batch_tensor",
    "_convert_to_float_tensor",
    "_convert_to_tensor",
    "append_to_last_row",
    "batch_to_device",
    "check_package_availability",
    "check_version_requirements",
    "community_detection",
    "compute_count_vector",
    "cos_sim",
    "disable_datasets_caching",
    "disable_logging",
    "dot_score",
    "euclidean_sim",
    "fullname",
    "get_device_name",
    "get_rank",
    "get_world_size",
    "http_get",
    "import_from_string",
    "import_module_class",
    "information_retrieval",
    "is_accelerate_available",
    "is_datasets_available",
    "is_dist_initialized",
    "is_training_available",
    "manhattan_sim",
    "maxsim",
    "maxsim_pairwise",
    "mean_maxsim",
    "mean_maxsim_pairwise",
    "mine_hard_negatives",
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
    "resolve_ids",
    "save_to_hub_args_decorator",
    "select_max_active_dims",
    "semantic_search",
    "similarity_fct_name",
    "to_scipy_coo",
    "truncate_embeddings",
]

OF_THE_HUB = ("is_sentence_transformer_model", "load_dir_path", "load_file_path")


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


def select_max_active_dims(embeddings: Any, max_active_dims: int | None) -> Any:
    """Return a tensor with the largest components of each embedding, by magnitude, and zeros elsewhere."""
    if max_active_dims is None:
        return embeddings
    if max_active_dims < 1:
        raise InputError(f"max_active_dims must be a positive integer, got {max_active_dims}.")
    vectors = embeddings if isinstance(embeddings, Tensor) else torch.tensor(embeddings)
    places = vectors.abs().topk(min(max_active_dims, vectors.shape[-1]), dim=-1).indices
    return torch.zeros_like(vectors).scatter(-1, places, vectors.gather(-1, places))


def compute_count_vector(embeddings: Tensor) -> Tensor:
    """Count, for each component, the embeddings in which it is not zero."""
    rows = embeddings.to_dense() if embeddings.is_sparse else embeddings
    return (rows != 0).reshape(-1, rows.shape[-1]).sum(0, dtype=torch.int32)


def to_scipy_coo(x: Tensor) -> Any:
    """Return a sparse tensor as SciPy's COO matrix."""
    from scipy.sparse import coo_matrix

    x = x.coalesce().cpu()
    return coo_matrix((x.values().numpy(), tuple(x.indices().numpy())), shape=tuple(x.shape))


def similarity_fct_name(similarity_fct: Any) -> str:
    """Return how a card names a function of similarity, with its settings."""
    if isinstance(similarity_fct, partial):
        return _call(similarity_fct_name(similarity_fct.func), similarity_fct.keywords)
    name = getattr(similarity_fct, "__name__", type(similarity_fct).__name__)
    owner: Any = getattr(similarity_fct, "__self__", None)
    if name in ("similarity", "similarity_pairwise") and hasattr(owner, "similarity_fn_name"):
        functions = (SimilarityFunction.to_similarity_fn, SimilarityFunction.to_similarity_pairwise_fn)
        return functions[name == "similarity_pairwise"](owner.similarity_fn_name).__name__
    config = getattr(similarity_fct, "get_config_dict", None)
    return name if config is None else _call(name, config(), always=True)


def _call(name: str, settings: dict[str, Any], always: bool = False) -> str:
    listed = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    return f"{name}({listed})" if listed or always else name


def append_to_last_row(csv_path: str, additional_data: Iterable[Any]) -> bool:
    """Append values to the last row of a CSV file; tell whether it has a row beside its header."""
    path = Path(csv_path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2:
        return False
    rows[-1] += additional_data
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return True


if not TYPE_CHECKING:

    def __getattr__(name):
        if name in OF_THE_HUB:  # huggingface_hub is optional
            return getattr(import_module("munjang.compat.file_io"), name)
        raise gaps.missing_name("munjang.compat.util", name)
