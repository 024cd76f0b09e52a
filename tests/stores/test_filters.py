import math

import pytest

from munjang.errors import InputError
from munjang.stores.filters import And, Compare, Filter, In, IsNull, Like, Not, Or, after_prefix, check, matches, names

YEAR = Compare("year", ">=", 2020)
KOREAN = Compare("lang", "=", "ko")
FIELDS = {"year": "int", "lang": "text", "price": "float", "open": "bool"}


@pytest.mark.parametrize(
    ("node", "row", "expected"),
    [
        (YEAR, {"year": 2020}, True),
        (YEAR, {"year": 2019}, False),
        (YEAR, {}, False),
        (Not(YEAR), {}, False),  # unknown, not false
        (Not(YEAR), {"year": None}, False),
        (Not(YEAR), {"year": 2019}, True),
        (Or((YEAR, KOREAN)), {"lang": "ko"}, True),  # unknown or true
        (Not(Or((YEAR, KOREAN))), {"lang": "en"}, False),  # not (unknown or false)
        (Not(And((YEAR, KOREAN))), {"lang": "en"}, True),  # not (unknown and false)
        (And((YEAR, KOREAN)), {"year": 2021, "lang": "ko"}, True),
        (IsNull("year"), {}, True),
        (Not(IsNull("year")), {"year": 0}, True),
        (In("lang", ("en", "ko")), {"lang": "ko"}, True),
        (Not(In("lang", ("en", "ko"))), {"lang": "fr"}, True),
        (Not(In("lang", ("en", "ko"))), {}, False),
        (Like("lang", "k"), {"lang": "ko"}, True),
        (Like("lang", "K"), {"lang": "ko"}, False),
        (Not(Like("lang", "e")), {}, False),
        (Compare("lang", "<", "가"), {"lang": "z"}, True),  # by code point
        (Compare("lang", "<", "a"), {"lang": "Z"}, True),
        (Compare("open", "=", True), {"open": True}, True),
        (Compare("year", "=", 1), {"year": True}, False),  # a truth value is no number
        (Compare("year", "<", 2020.5), {"year": 2020}, True),
        (Compare("year", "=", float(2**53)), {"year": 2**53 + 1}, True),  # as doubles
        (Compare("year", "=", 2**53), {"year": 2**53 + 1}, False),  # exactly
        (Compare("price", ">", 1.0), {"price": math.nan}, False),
        (Not(Compare("price", ">", 1.0)), {"price": math.nan}, False),
        (IsNull("price"), {"price": math.nan}, True),
        (Compare("price", "=", 0.0), {"price": -0.0}, True),
    ],
)
def test_meaning(node: Filter, row: dict, expected: bool) -> None:
    assert matches(node, row) is expected


def test_names() -> None:
    assert names(Or((YEAR, Not(And((KOREAN, IsNull("open"))))))) == {"year", "lang", "open"}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (Compare("yaer", "=", 1), "Unknown field 'yaer'.*Did you mean 'year'"),
        (Compare("year", "~", 1), "Unknown comparison '~'"),
        (Compare("year", "=", "2020"), "'year' holds int, which doesn't compare with '2020'"),
        (Compare("lang", "=", True), "'lang' holds text"),
        (Compare("price", "=", math.nan), "outside of what 64 bits hold"),
        (Compare("year", "=", 2**63), "outside of what 64 bits hold"),
        (Compare("open", "<", True), "it knows = and !="),
        (Like("year", "2"), "`like` is for text"),
        (In("year", ()), "1 to 1,000 values, not 0"),
        (In("year", (1, "2")), "doesn't compare with '2'"),
        (And(()), "And needs at least one part"),
        (Or((Compare("lang", "=", "a\0b"), YEAR)), "NUL"),
        (Compare("lang", "=", "\ud800"), "surrogate"),
    ],
)
def test_check_refuses(node: Filter, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check(node, FIELDS)


def test_check_bounds_depth() -> None:
    node: Filter = YEAR
    for _ in range(500):
        node = Not(node)
    with pytest.raises(InputError, match="nested more than 64 deep"):
        check(node, FIELDS)


def test_check_takes_what_fits() -> None:
    check(Not(And((YEAR, Or((KOREAN, In("id", ("a",)), Like("document_id", "x"))), Compare("price", "<", 3)))), FIELDS)
    with pytest.raises(InputError):
        check(YEAR, {})


def test_after_a_prefix() -> None:
    assert after_prefix("ab") == "ac"
    assert after_prefix("a\U0010ffff") == "b"
    assert after_prefix("\U0010ffff") is None
    assert after_prefix("\ud7ff") == "\ue000"
