"""Filters as expressions of Milvus, in words that every version understands alike.

Versions differ in what `not` makes of a missing key, in `in` over JSON and in `like`, so none of them is used: a filter
is turned into when it is true and when it is false, both with `and` and `or` over comparisons that hold only where the
key is there. `!=` is less or greater, a prefix is a range, and a whole number against a float is a range of whole
numbers, which is exact at both ends of 64 bits.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence

from munjang.stores.filters import RESERVED, And, Compare, Filter, In, IsNull, Like, Not, Or, after_prefix, balanced
from munjang.types import Scalar

NEVER, ALWAYS = '(id == "")', '(id != "")'  # no id is empty
ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
OPPOSITES = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIN_INT, MAX_INT = -(2**63), 2**63 - 1


def quoted(text: str) -> str:
    """Write a text as a literal: quotes, backslashes and line ends are escaped.

    >>> quoted('a"; \\\\n')
    '"a\\\\"; \\\\\\\\n"'
    """
    return f'"{text.translate(ESCAPES)}"'


def key(name: str) -> str:
    """Return the key of a field in the JSON of a row: the same in every process, whatever the name holds."""
    return "m" + hashlib.sha256(name.encode()).hexdigest()[:20]


def expression(node: Filter, fields: Mapping[str, str]) -> str:
    """Compile a checked filter: the rows for which it is true."""
    return _compiled(balanced(node), True, {**fields, **RESERVED})


def within(name: str, values: Sequence[str]) -> str:
    """Select rows whose id or document id is one of these."""
    return f"{name} in [{', '.join(map(quoted, values))}]"


def _compiled(node: Filter, is_true: bool, kinds: Mapping[str, str]) -> str:
    """Compile when a filter is true, or when it is false; unknown is neither."""
    match node:
        case And(parts) | Or(parts):
            word = "and" if isinstance(node, And) == is_true else "or"
            return _joined([_compiled(part, is_true, kinds) for part in parts], word)
        case Not(part):
            return _compiled(part, not is_true, kinds)
        case IsNull(name):
            if name in RESERVED:
                return NEVER if is_true else ALWAYS
            there = f"(exists {_operand(name)})"
            return f"(not {there})" if is_true else there
        case Compare(name, op, value):
            return _compared(name, kinds[name], op if is_true else OPPOSITES[op], value)
        case In(name, values):
            op, word = ("=", "or") if is_true else ("!=", "and")
            return _joined([_compared(name, kinds[name], op, value) for value in values], word)
        case Like(name, prefix):
            after = after_prefix(prefix)
            if is_true:
                upper = [] if after is None else [_test(name, "<", quoted(after))]
                return _joined([_test(name, ">=", quoted(prefix)), *upper], "and")
            upper = [] if after is None else [_test(name, ">=", quoted(after))]
            return _joined([_test(name, "<", quoted(prefix)), *upper], "or")


def _compared(name: str, kind: str, op: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return _test(name, "==", str(value == (op == "=")).lower())
    if isinstance(value, str) or kind == "float":
        literal = quoted(value) if isinstance(value, str) else repr(float(value))
        if op == "!=":
            return _joined([_test(name, "<", literal), _test(name, ">", literal)], "or")
        return _test(name, "==" if op == "=" else op, literal)
    low, high = _bounds(value)
    ranges = {
        "=": [(low, high)],
        "!=": [(MIN_INT, low), (high, MAX_INT + 1)],
        "<": [(MIN_INT, low)],
        "<=": [(MIN_INT, high)],
        ">": [(high, MAX_INT + 1)],
        ">=": [(low, MAX_INT + 1)],
    }
    return _joined([_between(name, *each) for each in ranges[op]], "or")


def _bounds(value: float) -> tuple[int, int]:
    """Return the first integer not below a value and the first above it, as doubles if it is one."""
    if isinstance(value, int):
        return value, value + 1
    return _first(lambda at: float(at) >= value), _first(lambda at: float(at) > value)


def _first(holds: Callable[[int], bool]) -> int:
    low, high = MIN_INT, MAX_INT + 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _between(name: str, low: int, high: int) -> str:
    """Select integers from low up to, but not, high. MIN_INT can't be a literal: its digits alone are too many."""
    if low >= high:
        return NEVER
    tests = [_test(name, ">=", str(low))] if low > MIN_INT else []
    tests += [_test(name, "<", str(high))] if high <= MAX_INT else []
    return _joined(tests, "and") if tests else f"(exists {_operand(name)})"


def _operand(name: str) -> str:
    return name if name in RESERVED else f'metadata["{key(name)}"]'


def _test(name: str, op: str, literal: str) -> str:
    return f"({_operand(name)} {op} {literal})"


def _joined(parts: Sequence[str], word: str) -> str:
    """Join as a balanced tree: a thousand values in one row are too deep for some parsers."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({_joined(parts[:middle], word)} {word} {_joined(parts[middle:], word)})"
