"""Filters as people write them, `year >= 2020 and lang = 'ko'`, to trees."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from munjang.errors import InputError, unknown
from munjang.stores.filters import (
    COMPARISONS,
    RESERVED,
    And,
    Compare,
    Filter,
    In,
    IsNull,
    Like,
    Not,
    Or,
    fit,
)
from munjang.stores.limits import MAX_DEPTH, MAX_FILTER_CHARS, MAX_IN_VALUES
from munjang.types import Scalar

TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")+")
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w))
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><=|>=|<>|!=|==|[=<>(),])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)
KEYWORDS = {"and", "or", "not", "in", "like", "is", "null", "true", "false"}
SPELLINGS = {"==": "=", "<>": "!="}


@dataclass(frozen=True)
class _Token:
    kind: str  # text, quoted, number, word, keyword, sign, end
    value: str
    place: int


def parse(text: str, fields: Mapping[str, str]) -> Filter:
    """Parse a filter. Names and types are checked against the fields of a schema.

    >>> parse("year >= 2020 and lang = 'ko'", {"year": "int", "lang": "text"})
    And(parts=(Compare(name='year', op='>=', value=2020), Compare(name='lang', op='=', value='ko')))
    """
    if not isinstance(text, str):
        raise InputError(f"A filter is text, such as \"year >= 2020 and lang = 'ko'\", not {text!r:.40}.")
    if len(text) > MAX_FILTER_CHARS:
        raise InputError(f"A filter may have {MAX_FILTER_CHARS:,} characters; this one has {len(text):,}.")
    return _Parser(text, {**fields, **RESERVED}).whole()


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while True:
        found = TOKEN.match(text, place)
        if found is None:
            rest = text[place:].lstrip()
            closing = {"'": "the text is not closed: '", '"': 'the name is not closed or empty: "'}.get(rest[0])
            raise _wrong(text, closing or "this is not a name, a value or an operator", len(text) - len(rest))
        kind = str(found.lastgroup)
        value = found[kind]
        if kind in ("text", "quoted"):
            value = value[1:-1].replace(value[0] * 2, value[0])
        elif kind == "word" and value.lower() in KEYWORDS:
            kind, value = "keyword", value.lower()
        yield _Token(kind, value, found.start(str(found.lastgroup)))
        if kind == "end":
            return
        place = found.end()


def _whole_number(digits: str) -> int:
    """Read an integer; one that 64 bits can't hold only has to stay that large: Python refuses 4,300 digits."""
    value = int(digits.lstrip("+-0")[:20] or 0)
    return -value if digits.startswith("-") else value


def _wrong(text: str, problem: str, place: int) -> InputError:
    rest = text[place : place + 40]
    where = f"at: {rest}{'...' if place + 40 < len(text) else ''}" if rest else "at its end"
    return InputError(f"The filter can't be read: {problem}, {where}")


class _Parser:
    """One method per rule: either = both or both ...; both = one and one ...; one = not one | (either) | test."""

    def __init__(self, text: str, kinds: Mapping[str, str]) -> None:
        self.text, self.kinds = text, kinds
        self.tokens = list(_tokens(text))
        self.place = 0

    def whole(self) -> Filter:
        tree = self.either(0)
        if self.next.kind != "end":
            raise self.wrong("expected `and`, `or` or the end")
        return tree

    @property
    def next(self) -> _Token:
        return self.tokens[self.place]

    def wrong(self, problem: str, token: _Token | None = None) -> InputError:
        return _wrong(self.text, problem, (token or self.next).place)

    def take(self, kind: str, *values: str) -> _Token | None:
        token = self.next
        if token.kind != kind or (values and token.value not in values):
            return None
        self.place += 1
        return token

    def expect(self, kind: str, value: str) -> None:
        if not self.take(kind, value):
            raise self.wrong(f"expected `{value}`")

    def either(self, depth: int) -> Filter:
        parts = [self.both(depth)]
        while self.take("keyword", "or"):
            parts.append(self.both(depth))
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def both(self, depth: int) -> Filter:
        parts = [self.one(depth)]
        while self.take("keyword", "and"):
            parts.append(self.one(depth))
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def one(self, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise self.wrong(f"it is nested more than {MAX_DEPTH} deep")
        if self.take("keyword", "not"):
            return Not(self.one(depth + 1))
        if self.take("sign", "("):
            inner = self.either(depth + 1)
            self.expect("sign", ")")
            return inner
        return self.test()

    def test(self) -> Filter:
        name = self.name()
        if self.take("keyword", "is"):
            is_negated = self.take("keyword", "not")
            self.expect("keyword", "null")
            return Not(IsNull(name)) if is_negated else IsNull(name)
        if self.take("keyword", "not"):
            return Not(self.listed(name))
        if self.next.value in ("in", "like") and self.next.kind == "keyword":
            return self.listed(name)
        token = self.take("sign", *COMPARISONS, *SPELLINGS)
        if token is None:
            raise self.wrong(f"expected a comparison ({', '.join(COMPARISONS)}, in, like, is null) after {name!r}")
        op = SPELLINGS.get(token.value, token.value)
        return Compare(name, op, self.value(name, op))

    def name(self) -> str:
        token = self.take("word") or self.take("quoted")
        if token is None:
            raise self.wrong("expected the name of a field")
        if token.value not in self.kinds:
            raise self.wrong(str(unknown("field", token.value, self.kinds)).rstrip("."), token)
        return token.value

    def listed(self, name: str) -> In | Like:
        """Parse what may follow `not`: `in (...)` or `like '...'`."""
        if self.take("keyword", "like"):
            token = self.next
            pattern = self.value(name, "like")
            return Like(name, self.prefix(str(pattern), token))
        self.expect("keyword", "in")
        self.expect("sign", "(")
        values = [self.value(name, "in")]
        while self.take("sign", ","):
            if len(values) == MAX_IN_VALUES:
                raise self.wrong(f"`in` takes at most {MAX_IN_VALUES:,} values")
            values.append(self.value(name, "in"))
        self.expect("sign", ")")
        return In(name, tuple(values))

    def value(self, name: str, op: str) -> Scalar:
        token = self.next
        given: Scalar
        if self.take("text"):
            given = token.value
        elif self.take("keyword", "true", "false"):
            given = token.value == "true"
        elif self.take("number"):
            is_float = any(sign in token.value for sign in ".eE")
            given = float(token.value) if is_float else _whole_number(token.value)
        elif token.kind == "keyword" and token.value == "null":
            raise self.wrong("nothing compares with null; write `is null` or `is not null`")
        else:
            raise self.wrong("expected a number, true, false or a text in 'single quotes'")
        try:
            return fit(given, name, self.kinds[name], op)
        except InputError as error:
            raise self.wrong(str(error), token) from None

    def prefix(self, pattern: str, token: _Token) -> str:
        r"""Return the text before the final %; `\%`, `\_` and `\\` stand for themselves."""
        if not re.fullmatch(r"(?:[^%_\\]|\\[%_\\])+%", pattern, re.DOTALL):
            raise self.wrong(
                r"`like` takes a text and one % at its end, as in 'x%'; write \% \_ \\ for themselves", token
            )
        return re.sub(r"\\(.)", r"\1", pattern[:-1])
