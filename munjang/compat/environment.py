"""Small helpers of sentence-transformers' util: installed packages, process rank, class names, logging."""

import logging
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata
from inspect import isclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import torch.distributed

from munjang.errors import InputError


def check_package_availability(package_name: str, owner: str) -> bool:
    """Tell whether a package is installed whose home page names this owner."""
    try:
        fields = metadata(package_name)
    except PackageNotFoundError:
        return False
    page = fields["Home-page"] if "Home-page" in fields else None  # noqa: SIM401  # it has no get
    return fields["Name"] == package_name and page is not None and owner in page


def is_accelerate_available() -> bool:
    """Tell whether accelerate is installed."""
    return check_package_availability("accelerate", "huggingface")


def is_datasets_available() -> bool:
    """Tell whether datasets is installed."""
    return check_package_availability("datasets", "huggingface")


def is_training_available() -> bool:
    """Tell whether sentence-transformers could train here: it needs accelerate and datasets."""
    return is_accelerate_available() and is_datasets_available()


def is_dist_initialized() -> bool:
    """Tell whether this process belongs to a distributed group."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def get_rank() -> int:
    """Return the rank of this process in its group."""
    return torch.distributed.get_rank() if is_dist_initialized() else 0


def get_world_size() -> int:
    """Return the number of processes in the group."""
    return torch.distributed.get_world_size() if is_dist_initialized() else 1


def fullname(obj: Any) -> str:
    """Return the qualified name of a class, or of the class of an object."""
    kind = obj if isclass(obj) else type(obj)
    return kind.__name__ if kind.__module__ in (None, "builtins") else f"{kind.__module__}.{kind.__name__}"


def import_from_string(dotted_path: str) -> type:
    """Import the class or other attribute that a dotted path names."""
    module, _, name = dotted_path.rpartition(".")
    if not module:
        raise ImportError(f"{dotted_path} doesn't look like a module path")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        raise ImportError(f'Module "{module}" does not define a "{name}" attribute/class') from None


@contextmanager
def disable_logging(highest_level: int = logging.CRITICAL) -> Iterator[None]:
    """Suppress log lines up to this level inside the block."""
    before = logging.root.manager.disable
    logging.disable(highest_level)
    try:
        yield
    finally:
        logging.disable(before)


class LoggingHandler(logging.StreamHandler[Any]):
    """Log lines on standard output."""

    def __init__(self, level: int = logging.NOTSET) -> None:
        super().__init__(sys.stdout)
        self.setLevel(level)


def http_get(url: str, path: str) -> None:
    """Download a file; what is there under another name until all of it has come."""
    partial = Path(f"{path}_part")
    partial.parent.mkdir(parents=True, exist_ok=True)
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{url} is not an address of the web.")
    with urlopen(url) as answer, partial.open("wb") as file:
        shutil.copyfileobj(answer, file)
    partial.replace(path)
