"""Public names of a package, loaded on first use, so that importing it costs nothing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loader(package: str, public: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names stand in the modules that `public` says."""

    def load(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"{package} has no public name {name!r}; choose from {', '.join(public)}")
        value = getattr(import_module(public[name]), name)
        setattr(sys.modules[package], name, value)  # from now on an ordinary look-up
        return value

    return load
