"""The two layers that BGE-M3 keeps beside its encoder: weights of tokens, and the projection of token vectors."""

from pathlib import Path

from torch import nn

from munjang.checkpoint.files import read_tensors
from munjang.errors import CheckpointError
from munjang.nn.blank import blank
from munjang.nn.heads import check_weight

WEIGHTS_FILE, TOKENS_FILE = "sparse_linear.pt", "colbert_linear.pt"


def has_tokens(folder: Path) -> bool:
    """Tell whether the folder has BGE-M3's projection of token vectors."""
    return (folder / TOKENS_FILE).is_file() and (folder / "modules.json").is_file()


def has_weights(folder: Path) -> bool:
    """Tell whether the folder has BGE-M3's weights of tokens."""
    return (folder / WEIGHTS_FILE).is_file() and (folder / "modules.json").is_file()


def read_linear(path: Path) -> nn.Linear:
    """Read a layer that torch saved alone."""
    tensors = read_tensors(path)
    if set(tensors) != {"weight", "bias"} or tensors["weight"].ndim != 2:
        raise CheckpointError(f"{path} should hold the weight and bias of one layer, not {', '.join(tensors)}.")
    for name, tensor in tensors.items():
        check_weight(f"{path}: the tensor {name}", tensor)
    with blank():
        linear = nn.Linear(tensors["weight"].shape[1], tensors["weight"].shape[0])
    linear.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    linear.requires_grad_(True)
    return linear
