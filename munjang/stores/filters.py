"""Filters over metadata, as trees: `matches` defines what they mean, and each engine compiles them on its own.

The meaning is that of SQL with three truth values. A comparison with a missing key is unknown, `not` unknown is
unknown, and only rows for which the whole is true are kept. Text compares by code point, and case counts. Whole numbers
of a field compare exactly among each other; a whole number and a float compare as doubles. Truth values know = and !=
only. NaN, which stores don't take, compares like a missing key.
"""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from munjang.errors import InputError, unknown
from munjang.stores.limits import MAX_DEPTH, MAX_IN_VALUES, MAX_TESTS
from munjang.types import Scalar

RESERVED = {"id": "text", "document_id": "text"}  # every row has them, beside its metadata


@dataclass(frozen=True)
class Compare:
    """`name op value`; op of COMPARISONS."""

    name: str
    op: str
    value: Scalar


@dataclass(frozen=True)
class In:
    """`name in (values)`; at least one."""

    name: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Like:
    """`name like 'prefix%'`; the prefix is plain text in which % and _ mean themselves."""

    name: str
    prefix: str


@dataclass(frozen=True)
class IsNull:
    """`name is null`: the row doesn't have it."""

    name: str


@dataclass(frozen=True)
class And:
    """All parts."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True)
class Or:
    """Any part."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True)
class Not:
    """The opposite; unknown stays unknown."""

    part: "Filter"


Filter: TypeAlias = Compare | In | Like | IsNull | And | Or | Not
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matches(node: Filter, row: Mapping[str, Scalar | None]) -> bool:
    """Tell whether the filter is true of a row: its metadata, `id` and `document_id`."""
    return _truth(node, row) is True


def _truth(node: Filter, row: Mapping[str, Scalar | None]) -> bool | None:
    match node:
        case And(parts):
            truths = [_truth(part, row) for part in parts]
            return False if False in truths else None if None in truths else True
        case Or(parts):
            truths = [_truth(part, row) for part in parts]
            return True if True in truths else None if None in truths else False
        case Not(part):
            truth = _truth(part, row)
            return None if truth is None else not truth
        case IsNull(name):
            return _is_missing(row.get(name))
        case Compare(name, op, value):
            return _compare(row.get(name), op, value)
        case In(name, values):
            truths = [_compare(row.get(name), "=", value) for value in values]
            return True if True in truths else None if None in truths else False
        case Like(name, prefix):
            given = row.get(name)
            return given.startswith(prefix) if isinstance(given, str) else None


def _is_missing(value: Scalar | None) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _compare(given: Scalar | None, op: str, value: Scalar) -> bool | None:
    if given is None or _is_missing(given) or _family(given) != _family(value):
        return None
    if isinstance(given, float) or isinstance(value, float):
        given, value = float(given), float(value)  # as engines do; Python alone would compare without rounding
    return bool(COMPARISONS[op](given, value))


def _family(value: Scalar) -> str:
    return "text" if isinstance(value, str) else "bool" if isinstance(value, bool) else "number"


def after_prefix(prefix: str) -> str | None:
    """Return the first text after all texts that begin with a prefix; None where there is none."""
    while prefix:
        code = ord(prefix[-1]) + 1
        if code <= 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if code == 0xD800 else code)  # surrogates are not text
        prefix = prefix[:-1]
    return None


def balanced(node: Filter) -> Filter:
    """Rewrite `and` and `or` over many parts as trees of two, the shallowest parts joined first.

    The depth then is that of the parentheses and the logarithm of the number of tests: engines go down a filter on
    small stacks, and overflowing one ends the process.

    >>> balanced(Or(tuple(Compare("year", "=", year) for year in (1, 2, 3)))).parts[0]
    Compare(name='year', op='=', value=3)
    """
    return _balanced(node)[1]


def _balanced(node: Filter) -> tuple[int, Filter]:
    match node:
        case And(parts) | Or(parts):
            waiting = [(depth, number, part) for number, (depth, part) in enumerate(map(_balanced, parts))]
            heapify(waiting)
            for number in range(len(parts), 2 * len(parts) - 1):
                (_, _, left), (depth, _, right) = heappop(waiting), heappop(waiting)  # the deeper one comes second
                heappush(waiting, (depth + 1, number, type(node)((left, right))))
            depth, _, tree = waiting[0]
            return depth, tree
        case Not(part):
            depth, tree = _balanced(part)
            return depth + 1, Not(tree)
        case _:
            return 0, node


def names(node: Filter) -> set[str]:
    """Return the fields that a filter asks about."""
    match node:
        case And(parts) | Or(parts):
            return set().union(*map(names, parts))
        case Not(part):
            return names(part)
        case _:
            return {node.name}


def check(node: Filter, fields: Mapping[str, str]) -> None:
    """Refuse a tree, made by hand perhaps, whose names, types or size don't fit the schema's fields."""
    num_tests = _check(node, {**fields, **RESERVED}, MAX_DEPTH * 2)
    if num_tests > MAX_TESTS:
        raise InputError(f"A filter may have {MAX_TESTS:,} tests, values of `in` included; this one has {num_tests:,}.")


def _check(node: Filter, kinds: Mapping[str, str], depth: int) -> int:
    """Return the number of tests."""
    if depth == 0:
        raise InputError(f"The filter is nested more than {MAX_DEPTH} deep.")
    match node:
        case And(parts) | Or(parts):
            if not parts:
                raise InputError(f"{type(node).__name__} needs at least one part.")
            return sum(_check(part, kinds, depth - 1) for part in parts)
        case Not(part):
            return _check(part, kinds, depth - 1)
        case Compare(name, op, value):
            if op not in COMPARISONS:
                raise unknown("comparison", op, COMPARISONS)
            fit(value, name, _kind(name, kinds), op)
        case In(name, values):
            if not 0 < len(values) <= MAX_IN_VALUES:
                raise InputError(f"`in` takes 1 to {MAX_IN_VALUES:,} values, not {len(values):,}.")
            for value in values:
                fit(value, name, _kind(name, kinds), "in")
            return len(values)
        case Like(name, prefix):
            fit(prefix, name, _kind(name, kinds), "like")
        case IsNull(name):
            _kind(name, kinds)
    return 1


def _kind(name: str, kinds: Mapping[str, str]) -> str:
    if name not in kinds:
        raise unknown("field", name, kinds)
    return kinds[name]


def fit(value: Scalar, name: str, kind: str, op: str) -> Scalar:
    """Convert a value to what a field of this kind compares with: 3 -> 3.0 for floats, 3.0 -> 3 for whole numbers."""
    if op == "like" and kind != "text":
        raise InputError(f"`like` is for text, and {name!r} holds {kind}")
    if kind == "bool" and op not in ("=", "!=", "in"):
        raise InputError(f"{name!r} is true or false; it knows = and !=, not {op}")
    expected = "number" if kind in ("int", "float") else kind
    if _family(value) != expected:
        raise InputError(f"{name!r} holds {kind}, which doesn't compare with {value!r}")
    if isinstance(value, str):
        return plain_text(value, "A text in a filter")
    if isinstance(value, bool):
        return value
    if not math.isfinite(value) or (isinstance(value, int) and not -(2**63) <= value < 2**63):
        raise InputError(f"{value!r:.40} is outside of what 64 bits hold")
    if kind == "float":
        return float(value) + 0.0  # no negative zero: some engines order it before zero
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    return int(value) if is_whole else value


def plain_text(text: str, what: str) -> str:
    """Return the text, or refuse what not every engine can keep."""
    if "\0" in text:
        raise InputError(f"{what} holds a NUL character, which stores can't keep: {text!r:.60}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} holds half of a surrogate pair, which is not text: {text!r:.60}") from None
    return text
