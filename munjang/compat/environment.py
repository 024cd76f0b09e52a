"""Small helpers of sentence-transformers' util: installed packages, process rank, class names, logging."""

import logging
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, metadata, version
from inspect import isclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import torch.distributed

from munjang.engine.devices import pick_device
from munjang.errors import InputError

logger = logging.getLogger(__name__)


def check_package_availability(package_name: str, owner: str) -> bool:
    """Tell whether a package is installed whose home page names this owner."""
    try:
        fields = metadata(package_name)
    except PackageNotFoundError:
        return False
    page = fields["Home-page"] if "Home-page" in fields else None  # noqa: SIM401  # it has no get
    return fields["Name"] == package_name and page is not None and owner in page


def get_installed_version(package_name: str) -> str | None:
    """Return the version of a package, as an imported module states it, or None; "python" is Python's own."""
    if package_name == "python":
        return platform.python_version()
    stated = getattr(sys.modules.get(package_name.replace("-", "_")), "__version__", None)
    if isinstance(stated, str):
        return stated
    try:
        return version(package_name)
    except PackageNotFoundError:
        return None


def check_version_requirements(requirements: dict[str, Any] | None, source: str | None = None) -> None:
    """Raise ImportError if packages don't have the versions that a model asks for: {"transformers": ">=5.15"}.

    A requirement may be {"specifier", "reason"}; one that can't be read is skipped with a warning.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    if requirements and not isinstance(requirements, dict):
        logger.warning("Ignoring the requirements of %r: expected a dictionary of version specifiers.", source)
        return
    unmet, wanted = [], []
    for name, requirement in (requirements or {}).items():
        package = {"pytorch": "torch"}.get(name, name)
        whole = requirement if isinstance(requirement, dict) else {"specifier": requirement}
        specifier = whole.get("specifier", "")
        found = get_installed_version(package)
        try:
            allowed = SpecifierSet(specifier, prereleases=True) if isinstance(specifier, str) else None
            if allowed is None:
                raise InvalidSpecifier("expected a version specifier string")
            if found is not None and allowed.contains(Version(found)):
                continue
        except (InvalidSpecifier, InvalidVersion) as error:
            logger.warning("Could not verify the %r requirement of %r: %s", specifier, source, error)
            continue
        state = "it is not installed" if found is None else f"{package}=={found} is installed"
        unmet.append(f"- {package}{specifier}, but {state}. {whole.get('reason', '')}".rstrip())
        wanted += [f'"{package}{specifier}"'] if package != "python" else []
    if unmet:
        way = [f"Install compatible versions with:\n    pip install -U {' '.join(wanted)}"] if wanted else []
        raise ImportError("\n".join([f"The model {source!r} requires:" if source else "It requires:", *unmet, *way]))


def get_device_name() -> str:
    """Return the device that a model is loaded on by default; in a run of several processes, the process's own GPU."""
    if not torch.cuda.is_available():
        return str(pick_device(None))
    rank = get_rank() if is_dist_initialized() and torch.cuda.device_count() > get_rank() else 0
    return f"cuda:{os.environ.get('LOCAL_RANK', rank)}"


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


def import_module_class(class_ref: str, model_name_or_path: str | None = None, **options: Any) -> type:
    """Import a class of the incumbent's or of yours by its dotted path; never code that comes with a model."""
    package = "sentence_transformers."
    if class_ref.startswith(package):
        return import_from_string(f"munjang.compat.{class_ref.removeprefix(package)}")
    if model_name_or_path is not None:
        raise InputError(
            f"{model_name_or_path} names the class {class_ref!r}. Code that a model asks for is never run here, with "
            "trust_remote_code or without: import the class in your own code and give modules=[...]."
        )
    return import_from_string(class_ref)


@contextmanager
def disable_datasets_caching() -> Iterator[None]:
    """Turn the cache of `datasets` off inside the block."""
    from datasets import disable_caching, enable_caching, is_caching_enabled

    was_on = is_caching_enabled()
    disable_caching()
    try:
        yield
    finally:
        if was_on:
            enable_caching()


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
