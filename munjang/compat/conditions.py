"""Filters of other libraries as filters of ours: a field, an operator and a value become `"year" >= 2020`."""

from collections.abc import Sequence
from typing import Any

from munjang.errors import InputError, unknown

COMPARED = {"==": "=", "!=": "!=", ">": ">", ">=": ">=", "<": "<", "<=": "<="}
LISTED = {"in": "in", "not in": "not in", "nin": "not in"}


def condition(name: str, operator: str, value: Any) -> str:
    """Return a test of one field; a missing field is neither equal nor unequal to anything, as in SQL.

    >>> condition("lang", "in", ["ko", "en"])
    '"lang" in (\\'ko\\', \\'en\\')'
    """
    field = '"' + name.replace('"', '""') + '"'
    if value is None and operator in ("==", "!="):
        return f"{field} is null" if operator == "==" else f"not ({field} is null)"
    if operator in LISTED:
        if not isinstance(value, (list, tuple, set)) or not value:
            raise InputError(f"{operator} needs a list of values for {name}, not {value!r}.")
        test = f"{field} in ({', '.join(map(_spelled, value))})"
        return test if LISTED[operator] == "in" else f"not ({test})"
    if operator not in COMPARED:
        raise unknown("operator", operator, [*COMPARED, *LISTED])
    return f"{field} {COMPARED[operator]} {_spelled(value)}"


def joined(operator: str, parts: Sequence[str]) -> str:
    """Join tests by and, or or not; `not` is true if not all of them are."""
    name = operator.lower()
    if name not in ("and", "or", "not"):
        raise unknown("operator", operator, ["and", "or", "not"])
    whole = (" or " if name == "or" else " and ").join(f"({part})" for part in parts)
    return f"not ({whole})" if name == "not" else whole


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    raise InputError(f"A filter compares with a text, a number or a truth value, not {type(value).__name__}.")
