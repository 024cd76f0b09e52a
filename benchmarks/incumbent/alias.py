"""Import sentence_transformers as munjang.compat.

A name that munjang.compat does not have becomes a placeholder that fails when it is used, not when it is imported:
otherwise one missing name would hide every other test of a file.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

THEIRS, OURS = "sentence_transformers", "munjang.compat"


class MissingName(Exception):
    """A test used a name that munjang.compat does not have."""


class Placeholder(type):
    """A class that stands for a missing name: it can be passed around and subclassed, but not used."""

    def __new__(cls, name: str, bases: tuple[type, ...] = (), namespace: dict[str, Any] | None = None) -> "Placeholder":
        space = {**(namespace or {}), "__missing__": next((base.__missing__ for base in bases), name)}
        return super().__new__(cls, name.rpartition(".")[2], (), space)

    def __init__(cls, *args: object, **kwargs: object) -> None:
        super().__init__(cls.__name__)

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        raise MissingName(cls.__missing__)

    def __getattr__(cls, name: str) -> "Placeholder":
        if name.startswith("__"):
            raise AttributeError(name)
        return Placeholder(f"{cls.__missing__}.{name}")

    def __instancecheck__(cls, instance: object) -> bool:
        raise MissingName(cls.__missing__)

    def __iter__(cls) -> Any:
        raise MissingName(cls.__missing__)

    def items(cls) -> list[tuple[str, str]]:
        """Return nothing, for tables that parametrize tests."""
        return []

    keys = values = items


class View(ModuleType):
    """A module of munjang.compat under sentence_transformers' name; what is set on it is set on the module itself."""

    def __init__(self, name: str, real: ModuleType | None) -> None:
        super().__init__(name)
        self.__dict__["_real"] = real
        self.__dict__["__path__"] = []
        self.__dict__["__all__"] = getattr(real, "__all__", [])
        self.__dict__["__file__"] = getattr(real, "__file__", None)

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self._real, name)
        except (AttributeError, ImportError):
            if name.startswith("__"):
                raise AttributeError(name) from None
        inner = f"{OURS}{self.__name__[len(THEIRS) :]}.{name}"
        try:
            is_module = self._real is not None and importlib.util.find_spec(inner) is not None
        except ImportError:
            is_module = False
        return (
            importlib.import_module(f"{self.__name__}.{name}") if is_module else Placeholder(f"{self.__name__}.{name}")
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) or name.startswith("__") or self._real is None:
            self.__dict__[name] = value
        else:
            setattr(self._real, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            del self.__dict__[name]
        elif self._real is not None:
            delattr(self._real, name)


class Finder(MetaPathFinder, Loader):
    """Find every module of sentence_transformers in munjang.compat."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != THEIRS:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            real = importlib.import_module(OURS + spec.name[len(THEIRS) :])
        except ImportError:
            real = None
        return View(spec.name, real)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module was executed under its own name."""


def install() -> None:
    """Import munjang.compat wherever sentence_transformers is asked for, from now on."""
    sys.meta_path.insert(0, Finder())
