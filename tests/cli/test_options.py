"""A dataclass is all that a command has to write."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal, get_args, get_type_hints

import pytest

from munjang.cli import VERBS
from munjang.cli.options import option, parse
from munjang.errors import InputError


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
        (["a", "-o", "x", "--fast", "--slow"], "--slow/--no-slow: not allowed with argument --fast"),
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


@dataclass(frozen=True)
class OneFile:
    source: str = option("what to read", is_positional=True)


def configured(tmp_path: Path, toml: str, *argv: str) -> Options:
    path = tmp_path / "options.toml"
    path.write_text(toml, encoding="utf-8")
    return parse(Options, [*argv, "--config", str(path)], prog="test", description="A test.")


FULL = """
files = ["가.txt", "b"]
output = "x"
chunk-rows = 8
weight = 2
color = "blue"
pair = ["p", "q"]
normalize = false
slow = true
"""


def test_a_file_gives_every_type(tmp_path: Path) -> None:
    wanted = Options(("가.txt", "b"), "x", 8, 2.0, "blue", ("p", "q"), False, False, True)
    found = configured(tmp_path, FULL)
    assert found == wanted
    assert isinstance(found.weight, float)
    assert configured(tmp_path, "", "a", "-o", "x") == Options(("a",), "x")


def test_flags_win_over_a_file(tmp_path: Path) -> None:
    found = configured(tmp_path, FULL, "c", "--weight", "0.5", "--normalize", "--fast", "-o", "y")
    assert (found.files, found.weight, found.normalize, found.output) == (("c",), 0.5, True, "y")
    assert (found.fast, found.slow) == (True, False)  # of one group: the flag's
    assert found.color == "blue"
    assert configured(tmp_path, FULL, "--no-slow").slow is False


def test_a_file_gives_a_single_positional(tmp_path: Path) -> None:
    (tmp_path / "o.toml").write_text('source = "a"')
    argv = ["--config", str(tmp_path / "o.toml")]
    assert parse(OneFile, argv, "test", "").source == "a"
    assert parse(OneFile, ["b", *argv], "test", "").source == "b"
    with pytest.raises(SystemExit, match="2"):
        parse(OneFile, ["--config"], "test", "")


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("chunk_row = 1", "Unknown key of .*options.toml 'chunk_row'; choose from .* Did you mean 'chunk_rows'?"),
        ("config = 'x'", "Unknown key of .* 'config'"),
        ("chunk_rows = 'many'", "options.toml: chunk_rows should be of type int, not 'many'"),
        ("chunk_rows = true", "should be of type int, not True"),
        ("chunk_rows = 1.5", "should be of type int, not 1.5"),
        ("fast = 1", "fast should be of type bool, not 1"),
        ("files = 'a'", "files should be a list, not 'a'"),
        ("files = [1]", "files should be of type str, not 1"),
        ("pair = ['a']", "pair should be a list of 2, not"),
        ("color = 'green'", "Unknown value of .*: color 'green'; choose from blue, red"),
        ("fast = true\nslow = true", "gives fast and slow; at most one"),
        ("chunk-rows = 1\nchunk_rows = 1", "gives chunk_rows twice"),
        ("[table]\nx = 1", "Unknown key of .* 'table'"),
        ("weight = ", "options.toml is not valid TOML: Invalid value"),
    ],
)
def test_wrong_files(tmp_path: Path, toml: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        configured(tmp_path, toml, "a", "-o", "x")


def test_what_a_file_leaves_out_is_still_required(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        configured(tmp_path, "weight = 1", "a")
    assert "required: -o/--output" in capsys.readouterr().err


# What a verb leaves out of a table: rows of texts alone can't be paired or labelled, and gradients need their bits
LEFT_OUT = {
    **{(verb, "format"): {"txt"} for verb in ("similarity", "evaluate")},
    **{(verb, "dtype"): {"float16", "int8"} for verb in ("train", "distill", "adapt")},
}


def choices(hint: object) -> set[object]:
    """Of `Literal[...]` or `Literal[...] | None`."""
    return {choice for inner in (get_args(hint) or [hint]) for choice in (get_args(inner) or [inner])} - {type(None)}


@pytest.mark.parametrize("verb", VERBS)
def test_choices_are_those_of_the_library(verb: str) -> None:
    """They are written again, because the tables come with torch and --help has to be quick."""
    from munjang.checkpoint.onnx import DTYPES as ONNX_DTYPES
    from munjang.checkpoint.write import FORMATS
    from munjang.data.tables import READERS
    from munjang.engine.devices import DTYPES
    from munjang.engine.engine import LONG_MODES
    from munjang.vectors.precision import PRECISIONS
    from munjang.vectors.similarity import SIMILARITIES

    dtypes = ONNX_DTYPES if verb == "export" else DTYPES
    tables = {"precision": PRECISIONS, "function": SIMILARITIES, "long": LONG_MODES, "dtype": dtypes, "format": READERS}
    tables["to"] = ("onnx", *FORMATS)
    hints = get_type_hints(import_module(f"munjang.cli.{verb}").Options)
    for name in tables.keys() & hints.keys():
        assert choices(hints[name]) == set(tables[name]) - LEFT_OUT.get((verb, name), set()), name


def test_a_flag_may_be_repeated() -> None:
    """`--model a=x --model b=y` names two models, not the last one alone."""

    @dataclass(frozen=True, kw_only=True)
    class Several:
        inputs: tuple[str, ...] = option("files", default=(), is_positional=True)
        model: tuple[str, ...] = option("models", default=())

    found = parse(Several, ["--model", "a=x", "--model", "b=y", "c=z"], "prog", "")
    assert found.model == ("a=x", "b=y", "c=z")
    assert parse(Several, ["one", "two"], "prog", "").inputs == ("one", "two")
