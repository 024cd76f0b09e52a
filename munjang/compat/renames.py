"""Accept older names of arguments, with a warning: sentences= for inputs=, tokenizer_kwargs= for processor_kwargs=.

The decorators have sentence-transformers' names, and say and do the same.
"""

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
logger = logging.getLogger(__name__)
TRANSFORMER_NAMES = {"model_args": "model_kwargs", "tokenizer_args": "processor_kwargs", "config_args": "config_kwargs"}
SCORER_NAMES = {
    "model_name": "model_name_or_path",
    "automodel_args": "model_kwargs",
    "tokenizer_args": "processor_kwargs",
    "tokenizer_kwargs": "processor_kwargs",
    "config_args": "config_kwargs",
    "cache_dir": "cache_folder",
    "default_activation_function": "activation_fn",
}
SCORER_POSITIONS = ("num_labels", "max_length", "activation_fn", "device")  # of versions before 5.4, after the name


def warn_once(message: str) -> None:
    """Log a warning: once for each message where transformers is imported, which adds that to loggers."""
    getattr(logger, "warning_once", logger.warning)(message)


def rename(kwargs: dict[str, Any], new_of_old: dict[str, str], of: str = "") -> None:
    """Give arguments their new names, in place; where both were given the new one counts."""
    for old, new in new_of_old.items():
        if old in kwargs:
            warn_once(f"The {of}`{old}` argument was renamed and is now deprecated. Please use `{new}` instead.")
            value = kwargs.pop(old)
            kwargs.setdefault(new, value)


def deprecated_kwargs(**new_of_old: str) -> Callable[[F], F]:
    """Accept old names of arguments: `@deprecated_kwargs(sentences="inputs")`."""

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            rename(kwargs, new_of_old)
            return function(*args, **kwargs)

        return cast(F, call)

    return decorate


def transformer_kwargs_decorator(function: F) -> F:
    """Accept the older names of a Transformer's arguments; cache_dir goes into each of the three dictionaries."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        rename(kwargs, TRANSFORMER_NAMES, "Transformer ")
        folder = kwargs.pop("cache_dir", None)
        if folder is not None:
            warn_once("The Transformer `cache_dir` argument is deprecated. Please use `model_kwargs` instead.")
            for name in TRANSFORMER_NAMES.values():
                kwargs[name] = {"cache_dir": folder, **(kwargs.get(name) or {})}
        return function(*args, **kwargs)

    return cast(F, call)


def cross_encoder_init_args_decorator(function: F) -> F:
    """Accept the older names of a CrossEncoder's arguments, and those that were positional."""

    @wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name, value in zip(SCORER_POSITIONS, args[1:], strict=False):
            warn_once(f"Passing `{name}` as a positional argument to CrossEncoder is deprecated: name it.")
            kwargs.setdefault(name, value)
        rename(kwargs, SCORER_NAMES, "CrossEncoder ")
        if "classifier_dropout" in kwargs:
            warn_once("The CrossEncoder `classifier_dropout` argument is deprecated: give it in `config_kwargs`.")
            dropout = {"classifier_dropout": kwargs.pop("classifier_dropout")}
            kwargs["config_kwargs"] = {**(kwargs.get("config_kwargs") or {}), **dropout}
        return function(self, *args[:1], **kwargs)

    return cast(F, call)


def cross_encoder_predict_rank_args_decorator(function: F) -> F:
    """Accept the older names of arguments of predict and rank, and drop those without an effect."""
    known = inspect.signature(function).parameters
    dropped = [name for name in ("num_workers", "convert_to_numpy", "convert_to_tensor") if name not in known]

    @wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        rename(kwargs, {"sentences": "inputs", "activation_fct": "activation_fn"})
        for name in dropped:
            if kwargs.pop(name, None) is not None:
                warn_once(f"The CrossEncoder.{function.__name__} `{name}` argument is deprecated and has no effect.")
        return function(self, *args, **kwargs)

    return cast(F, call)


def save_to_hub_args_decorator(function: F) -> F:
    """Accept repo_name= for repo_id=, and positions from before there was a token."""

    @wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        rename(kwargs, {"repo_name": "repo_id"})
        args = (*args[:2], None, *args[2:]) if len(args) >= 2 else args
        return function(self, *args, **kwargs)

    return cast(F, call)
