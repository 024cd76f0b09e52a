"""Filters as LanceDB expressions: `col` and `lit` only, so that no value is ever part of a text that is parsed.

Expressions know neither `is null` nor `like`. Every field has a column of truth values beside it that says whether the
row has it, and a prefix is a range: from the prefix itself to the first text after all that begin with it.
"""

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from munjang.stores.filters import RESERVED, And, Compare, Filter, In, IsNull, Like, Not, Or

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def expression(node: Filter, numbers: Mapping[str, int], kinds: Mapping[str, str]) -> Any:
    """The lancedb.expr.Expr of a tree that was checked; `numbers` are those of the fields' columns."""
    from lancedb.expr import col, lit

    def column(name: str) -> Any:
        return col(name if name in RESERVED else f"field_{numbers[name]}")

    def made(node: Filter) -> Any:
        match node:
            case And(parts):
                return reduce(operator.and_, map(made, parts))
            case Or(parts):
                return reduce(operator.or_, map(made, parts))
            case Not(part):
                return ~made(part)
            case IsNull(name):
                return col("has_id" if name in RESERVED else f"has_{numbers[name]}") == lit(False)
            case In(name, values):
                return listed(name, values)
            case Compare(name, op, value):
                return compared(name, op, value)
            case Like(name, prefix):
                starts, end = column(name) >= lit(prefix), after(prefix)
                return starts if end is None else starts & (column(name) < lit(end))

    def compared(name: str, op: str, value: Any) -> Any:
        kind = kinds.get(name, "text")
        given = column(name).cast("float64") if kind == "int" and isinstance(value, float) else column(name)
        return OPERATORS[op](given, lit(float(value) + 0.0 if kind == "float" else value))

    def listed(name: str, values: tuple[Any, ...]) -> Any:
        kind = kinds.get(name, "text")
        if kind == "int" and any(isinstance(value, float) for value in values):
            return reduce(operator.or_, [compared(name, "=", value) for value in values])
        return column(name).isin([lit(float(value) + 0.0 if kind == "float" else value) for value in values])

    return made(node)


def after(prefix: str) -> str | None:
    """The first text after all texts with this prefix; None where there is none."""
    while prefix:
        code = ord(prefix[-1]) + 1
        if code <= 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if code == 0xD800 else code)  # surrogates are no text
        prefix = prefix[:-1]
    return None
