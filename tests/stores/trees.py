"""Random filters and rows, and filters as text: shared by the tests of the parser and of every engine."""

from collections.abc import Mapping
from random import Random

from munjang.stores.filters import COMPARISONS, And, Compare, Filter, In, IsNull, Like, Not, Or
from munjang.types import Scalar, Value

WORDS = [
    "",
    "ko",
    "en",
    "Korea",
    "한국",
    "한국어",
    "it's",
    '"',
    "a%",
    "a_b",
    "a\\",
    "a%b",
    "x'; drop table rows; --",
    "\n",
    "é",
]
INTS = [0, 1, -1, 2019, 2020, 2021, 2**53 + 1, -(2**63), 2**63 - 1]
FLOATS = [0.0, 1.0, -1.5, 2020.5, 1e-300, 1e300, 0.1]


def random_value(random: Random, kind: str) -> Scalar:
    match kind:
        case "text":
            return random.choice(WORDS)
        case "int":
            return random.choice(INTS)
        case "float":
            return random.choice(FLOATS)
        case _:
            return random.random() < 0.5


def random_row(random: Random, fields: Mapping[str, str]) -> dict[str, Value]:
    """Metadata in which about a third of the keys is missing or null."""
    row: dict[str, Value] = {}
    for name, kind in fields.items():
        if random.random() < 0.8:
            row[name] = random_value(random, kind) if random.random() < 0.85 else None
    return row


def random_tree(random: Random, fields: Mapping[str, str], depth: int = 3) -> Filter:
    """A tree as the parser makes them: at least two parts, values of the field's kind."""
    if depth and random.random() < 0.7:
        if random.random() < 0.3:
            return Not(random_tree(random, fields, depth - 1))
        parts = tuple(random_tree(random, fields, depth - 1) for _ in range(random.randint(2, 3)))
        return random.choice([And, Or])(parts)
    name = random.choice(list(fields))
    kind = fields[name]
    match random.choice(["compare", "compare", "in", "like", "null"]):
        case "in":
            return In(name, tuple(random_value(random, kind) for _ in range(random.randint(1, 3))))
        case "like" if kind == "text":
            return Like(name, random.choice([word for word in WORDS if word]))
        case "null":
            return IsNull(name)
        case _:
            ops = ["=", "!="] if kind == "bool" else list(COMPARISONS)
            value = random_value(random, kind)
            if kind == "int" and random.random() < 0.2:
                value = 2020.5  # a float beside whole numbers
            return Compare(name, random.choice(ops), value)


def printed(node: Filter) -> str:
    """The text of a tree, in parentheses where they are needed and where they are not."""
    match node:
        case And(parts):
            return " AND ".join(f"({printed(part)})" for part in parts)
        case Or(parts):
            return " or ".join(f"({printed(part)})" for part in parts)
        case Not(IsNull(name)):
            return f"{quoted(name)} Is Not Null"
        case Not(In(name, values)):
            return f"{quoted(name)} not in ({', '.join(map(literal, values))})"
        case Not(part):
            return f"not ({printed(part)})"
        case IsNull(name):
            return f"{quoted(name)} is null"
        case In(name, values):
            return f"{quoted(name)} in ({','.join(map(literal, values))})"
        case Like(name, prefix):
            escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            return f"{quoted(name)} like {literal(escaped + '%')}"
        case Compare(name, op, value):
            return f"{quoted(name)}{op}{literal(value)}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(value: Scalar) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower() if isinstance(value, bool) else repr(value)
