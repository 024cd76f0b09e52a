"""A dataclass is all that a command has to write."""

from dataclasses import dataclass
from importlib import import_module
from typing import Literal, get_args, get_type_hints

import pytest

from munjang.cli import VERBS
from munjang.cli.options import option, parse


@dataclass(frozen=True)
class Options:
    files: tuple[str, ...] = option("what to read", is_positional=True)
    output: str = option("where to write", short="-o")
    chunk_rows: int = option("rows of a chunk, 100 % of them", default=4096)
    weight: float = option("how much", default=0.5)
    color: Literal["red", "blue"] | None = option("a color", default=None)
    pair: tuple[str, str] | None = option("two names", default=None)
    normalize: bool | None = option("as the model does", default=None)
    fast: bool = option("be quick", default=False, one_of="speed")
    slow: bool = option("be slow", default=False, one_of="speed")


def parsed(*argv: str) -> Options:
    return parse(Options, list(argv), prog="test", description="A test.")


def test_defaults() -> None:
    assert parsed("a", "-o", "x") == Options(files=("a",), output="x")


def test_every_type() -> None:
    given = parsed(
        *("a", "b", "--output", "x", "c", "--chunk-rows", "8", "--weight", "2", "--color", "blue"),
        *("--pair", "p", "q", "--no-normalize", "--slow"),
    )
    assert given == Options(("a", "b", "c"), "x", 8, 2.0, "blue", ("p", "q"), False, False, True)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["a"], "required: -o/--output"),
        (["-o", "x"], "required: files"),
        (["a", "-o", "x", "--chunk-rows", "many"], "--chunk-rows: invalid int value: 'many'"),
        (["a", "-o", "x", "--color", "green"], "invalid choice: 'green'"),
        (["a", "-o", "x", "--fast", "--slow"], "--slow: not allowed with argument --fast"),
        (["a", "-o", "x", "--chunk", "8"], "unrecognized arguments: --chunk"),
    ],
)
def test_wrong(argv: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        parsed(*argv)
    assert told in capsys.readouterr().err


def test_help_has_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parsed("--help")
    shown = " ".join(capsys.readouterr().out.split())
    assert "rows of a chunk, 100 % of them (default: 4096)" in shown
    assert "be quick --slow" in shown  # no default where it says nothing


def choices(hint: object) -> set[object]:
    """Of `Literal[...]` or `Literal[...] | None`."""
    return {choice for inner in (get_args(hint) or [hint]) for choice in (get_args(inner) or [inner])} - {type(None)}


@pytest.mark.parametrize("verb", VERBS)
def test_choices_are_those_of_the_library(verb: str) -> None:
    """They are written again, because the tables come with torch and --help has to be quick."""
    from munjang.checkpoint.onnx import DTYPES as ONNX_DTYPES
    from munjang.checkpoint.write import FORMATS
    from munjang.data.tables import READERS
    from munjang.nn.precision import PRECISIONS
    from munjang.nn.similarity import SIMILARITIES
    from munjang.runtime.encoding import LONG
    from munjang.runtime.executor import DTYPES

    dtypes = ONNX_DTYPES if verb == "export" else DTYPES
    tables = {"precision": PRECISIONS, "function": SIMILARITIES, "long": LONG, "dtype": dtypes, "format": READERS}
    tables["to"] = ("onnx", *FORMATS)
    hints = get_type_hints(import_module(VERBS[verb][0]).Options)
    for name in tables.keys() & hints.keys():
        assert choices(hints[name]) == set(tables[name]) - ({"txt"} if verb == "similarity" else set()), name
