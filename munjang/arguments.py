"""Options of the public calls as typed dictionaries, and an error for any other argument that names ours."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict, TypeVar

from torch import Tensor, nn

from munjang.errors import UnknownArgument, closest
from munjang.types import Floats

Precision = Literal["int8", "uint8", "binary", "ubinary"]
Activation = str | nn.Module | Callable[[Tensor], Tensor]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class EncodeOptions(TypedDict, total=False):
    """Options of `encode`, `encode_query` and `encode_document` beside `output` and `precision`."""

    prompt: str | None
    prompt_name: str | None
    normalize: bool | None
    truncate_dim: int | None
    long: Literal["truncate", "average", "error"] | str  # the names for editors to complete
    batch_tokens: int | None
    chunk_rows: int
    progress: bool | None
    ranges: Floats | None


class PredictOptions(TypedDict, total=False):
    """Options of `predict` beside the activation."""

    prompt: str | None
    prompt_name: str | None
    batch_tokens: int | None
    progress: bool | None


class RankOptions(PredictOptions, total=False):
    """Options of `rank` and `rank_many`."""

    activation: Activation | None


# sentence-transformers' arguments, and how the same is asked for here
OURS = {
    "batch_size": "batch_tokens= counts tokens, not texts; left out, it is what suits the machine",
    "show_progress_bar": "progress=True or False; left out, long work on a terminal shows a bar",
    "output_value": "output='tokens' gives token vectors",
    "convert_to_numpy": "output='numpy' is the default",
    "convert_to_tensor": "output='torch'",
    "normalize_embeddings": "normalize=True",
    "chunk_size": "chunk_rows=, for an iterator of texts",
    "device": "device= belongs to load(), and takes a list for several",
    "pool": "device=['cuda:0', 'cuda:1'] of load() computes on several devices",
    "target_devices": "device=['cuda:0', 'cuda:1'] of load() computes on several devices",
    "activation_fn": "activation=",
    "activation_fct": "activation=",
    "apply_softmax": "activation='Softmax'",
    "num_workers": "nothing is needed: threads of its own tokenize ahead",
    "return_documents": "nothing is needed: every hit has its text",
    "top_k": "k=",
    "hybrid": "by=('words', 'dense') is the default where the engine has words; by='dense' searches by vectors alone",
    "task": "prompt_name= chooses a prompt; encode_query and encode_document use the model's own",
}


def check_arguments(function: str, given: Mapping[str, object], allowed: Iterable[str]) -> None:
    """Refuse an argument that a function does not have; one of sentence-transformers' gets the name of ours.

    >>> check_arguments("encode", {"batch_size": 32}, ["batch_tokens", "progress"])
    Traceback (most recent call last):
    ...
    munjang.errors.UnknownArgument: encode() has no argument batch_size=: batch_tokens= counts tokens, not texts; left \
out, it is what suits the machine.
    """
    names = sorted(allowed)
    for name in given:
        if name not in names:
            hint = OURS.get(name) or f"choose from {', '.join(names)}"
            meant = "" if name in OURS else closest(name, names)
            raise UnknownArgument(f"{function}() has no argument {name}=: {hint}.{meant}")


def typed_like(other: FunctionT) -> Callable[[Callable[..., Any]], FunctionT]:
    """Give a method the overloads of another one."""
    return lambda function: function  # type: ignore[return-value]  # which is the point
