"""Accept older names of arguments: sentences= for inputs=, tokenizer_kwargs= for processor_kwargs=."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from munjang.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


def renamed(**new_of_old: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Accept old names of arguments: `@renamed(sentences="inputs")`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in new_of_old.items():
                if old in kwargs:
                    if new in kwargs:
                        raise InputError(f"{old} is an older name of {new}: give only one of them.")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call

    return decorate
