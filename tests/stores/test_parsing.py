from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from munjang.errors import InputError
from munjang.stores.filters import And, Compare, In, IsNull, Like, Not, Or, check
from munjang.stores.parsing import parse
from tests.stores.trees import printed, random_tree

FIELDS = {"year": "int", "lang": "text", "price": "float", "open": "bool", 'of "all" kinds; --': "text", "연도": "int"}
YEAR = Compare("year", "=", 1)
OPEN = Compare("open", "=", True)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("year = 1", YEAR),
        ("year==1", YEAR),
        ("year <> -2", Compare("year", "!=", -2)),
        ("year>=2020.0", Compare("year", ">=", 2020)),
        ("year < 2020.5", Compare("year", "<", 2020.5)),
        ("price = 3", Compare("price", "=", 3.0)),
        ("price > -.5e1", Compare("price", ">", -5.0)),
        ("연도 = 3", Compare("연도", "=", 3)),
        ("lang = 'it''s'", Compare("lang", "=", "it's")),
        ("lang in ('ko', 'en')", In("lang", ("ko", "en"))),
        ("lang NOT IN ('ko')", Not(In("lang", ("ko",)))),
        ("lang like 'k%'", Like("lang", "k")),
        (r"lang not like 'a\%\_\\%'", Not(Like("lang", "a%_\\"))),
        ("year is null", IsNull("year")),
        ("year IS NOT NULL", Not(IsNull("year"))),
        ('"of ""all"" kinds; --" = \'a\'', Compare('of "all" kinds; --', "=", "a")),
        ("id = 'a' and document_id != 'b'", And((Compare("id", "=", "a"), Compare("document_id", "!=", "b")))),
        ("year=1 or year=1 and open=TRUE", Or((YEAR, And((YEAR, OPEN))))),  # `and` binds closer
        ("(year=1 or year=1) and open=true", And((Or((YEAR, YEAR)), OPEN))),
        ("not year=1 and open=true", And((Not(YEAR), OPEN))),  # `not` binds closest
        ("not not ((year=1))", Not(Not(YEAR))),
    ],
)
def test_text_to_tree(text: str, tree: object) -> None:
    assert parse(text, FIELDS) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of a field, at its end"),
        ("yaer = 1", "Unknown field 'yaer'.*Did you mean 'year'.*at: yaer = 1"),
        ("year", "expected a comparison .* after 'year', at its end"),
        ("year = ", "expected a number, true, false or a text"),
        ("year = 1 2", "expected `and`, `or` or the end, at: 2"),
        ("year = 1)", "expected `and`, `or` or the end"),
        ("(year = 1", r"expected `\)`"),
        ("year = '1'", "'year' holds int, which doesn't compare with '1', at: '1'"),
        ("lang = 1", "'lang' holds text"),
        ("open = 1", "'open' holds bool"),
        ("open > true", "it knows = and !=, not >"),
        ("lang = 'x", "not closed"),
        ('"" = 1', "not closed or empty"),
        ("year = 12abc", "this is not a name, a value or an operator, at: 12abc"),
        ("year = 1; drop table rows", "this is not a name, a value or an operator, at: ; drop"),
        ("lang = 'a' -- b", "this is not a name"),
        ("year = null", "write `is null`"),
        ("year in ()", "expected a number"),
        ("year in (1, null)", "write `is null`"),
        ("year like 'a%'", "`like` is for text"),
        ("lang like '%a'", "one % at its end"),
        ("lang like 'a_%'", "one % at its end"),
        ("lang like 'a'", "one % at its end"),
        ("lang like '%'", "one % at its end"),
        ("price = 1e999", "outside of what 64 bits hold"),
        ("year = 9223372036854775808", "outside of what 64 bits hold"),
        (f"year = {'9' * 9000}", "outside of what 64 bits hold"),
        ("lang = 'a\0'", "NUL"),
        ("and = 1", "expected the name of a field"),
        (f"year in ({','.join('1' * 1001)})", "at most 1,000 values"),
        ("not " * 70 + "year = 1", "nested more than 64 deep"),
        ("(" * 9000, "nested more than 64 deep"),
        (5, "A filter is text"),
        (" " * 10_001, "10,000 characters; this one has 10,001"),
    ],
)
def test_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(text, FIELDS)


def test_bounds_are_kept_exactly() -> None:
    deep = "(" * 64 + "year = 1" + ")" * 64
    assert parse(deep, FIELDS) == YEAR
    assert len(parse(f"year in ({','.join('1' * 1000)})", FIELDS).values) == 1000


@given(st.randoms(use_true_random=False))
def test_a_printed_tree_is_read_back(random: Random) -> None:
    tree = random_tree(random, FIELDS)
    assert parse(printed(tree), FIELDS) == tree
    check(tree, FIELDS)


PIECES = [
    "year",
    "lang",
    "'",
    '"',
    "(",
    ")",
    ",",
    "=",
    "<",
    "in",
    "not",
    "like",
    "is",
    "null",
    "and",
    "or",
    "1",
    ".",
    "\\",
]


@given(st.text() | st.lists(st.sampled_from(PIECES)).map(" ".join) | st.lists(st.sampled_from(PIECES)).map("".join))
@example("year\u2028=\u00a01")
@example("year = \u0661")  # a digit, of another script
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = parse(text, FIELDS)
    except InputError:
        return
    assert parse(printed(tree), FIELDS) == tree


@pytest.mark.parametrize(
    ("number", "value"), [("0" * 44 + "5", 5), ("-" + "0" * 5000 + "7", -7), ("+09", 9), ("000", 0), ("-0", 0)]
)
def test_no_digit_is_cut(number: str, value: int) -> None:
    assert parse(f"year = {number}", {"year": "int"}) == Compare("year", "=", value)


@pytest.mark.parametrize("number", ["9" * 19, "1" + "0" * 5000, "-9223372036854775809"])
def test_numbers_of_too_many_digits_are_refused(number: str) -> None:
    with pytest.raises(InputError, match="64 bits"):
        parse(f"year = {number}", {"year": "int"})
