"""Small helpers of sentence-transformers' util: what is installed, which process this is, names of classes, logging."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata
from inspect import isclass
from typing import Any

import torch.distributed


def check_package_availability(package_name: str, owner: str) -> bool:
    """Whether a package is installed whose home page names this owner."""
    try:
        found = metadata(package_name)
    except PackageNotFoundError:
        return False
    page = found["Home-page"] if "Home-page" in found else None  # noqa: SIM401  # it has no get
    return found["Name"] == package_name and page is not None and owner in page


def is_accelerate_available() -> bool:
    """Whether accelerate is installed."""
    return check_package_availability("accelerate", "huggingface")


def is_datasets_available() -> bool:
    """Whether datasets is installed."""
    return check_package_availability("datasets", "huggingface")


def is_training_available() -> bool:
    """Whether sentence-transformers could train here: it needs accelerate and datasets."""
    return is_accelerate_available() and is_datasets_available()


def is_dist_initialized() -> bool:
    """Whether this process is one of several that work together."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def get_rank() -> int:
    """The number of this process among them, from 0."""
    return torch.distributed.get_rank() if is_dist_initialized() else 0


def get_world_size() -> int:
    """How many they are."""
    return torch.distributed.get_world_size() if is_dist_initialized() else 1


def fullname(obj: Any) -> str:
    """The module and name of a class, or of the class of an object."""
    kind = obj if isclass(obj) else type(obj)
    return kind.__name__ if kind.__module__ in (None, "builtins") else f"{kind.__module__}.{kind.__name__}"


def import_from_string(dotted_path: str) -> type:
    """The class or other attribute of a module that a dotted path names."""
    module, _, name = dotted_path.rpartition(".")
    if not module:
        raise ImportError(f"{dotted_path} doesn't look like a module path")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        raise ImportError(f'Module "{module}" does not define a "{name}" attribute/class') from None


@contextmanager
def disable_logging(highest_level: int = logging.CRITICAL) -> Iterator[None]:
    """No log lines up to this level inside the block."""
    before = logging.root.manager.disable
    logging.disable(highest_level)
    try:
        yield
    finally:
        logging.disable(before)
