"""Load the public names of a package on first use, so that importing it costs nothing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def loader(package: str, public: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package; `public` maps each name to the module that defines it."""

    def load(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"{package} has no public name {name!r}; choose from {', '.join(public)}")
        value = getattr(import_module(public[name]), name)
        setattr(sys.modules[package], name, value)  # from now on an ordinary look-up
        return value

    return load, lambda: sorted(public)
