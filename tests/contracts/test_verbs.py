"""Every verb in VERBS: help, an example, summaries in both languages, exit codes. A new one is covered at once."""

import shlex
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

from docs.generate.commands import example
from munjang import cli
from munjang.cli import VERBS, main


def test_the_table_has_every_verb() -> None:
    """A file of munjang/cli/ with a `run` is a verb."""
    assert cli.__file__ is not None
    names = [path.stem for path in Path(cli.__file__).parent.glob("*.py") if path.stem != "__init__"]
    assert {name for name in names if hasattr(import_module(f"munjang.cli.{name}"), "run")} == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"usage: munjang {verb} " in shown
    assert VERBS[verb][1:] in shown


@pytest.mark.parametrize("verb", VERBS)
def test_an_unknown_flag_is_a_usage_error(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*shlex.split(example(verb))[1:], "--no-such-flag"]) == 2
    error = capsys.readouterr().err
    assert f"usage: munjang {verb} " in error
    assert "unrecognized arguments: --no-such-flag" in error


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_help(verb: str) -> None:
    options = import_module(f"munjang.cli.{verb}").Options
    assert is_dataclass(options)
    assert options.__dataclass_params__.frozen  # type: ignore[attr-defined]
    for option in fields(options):
        assert option.metadata["help"], option.name


@pytest.mark.parametrize("verb", VERBS)
def test_summaries(verb: str) -> None:
    """In English an imperative that --help and the README show, in Korean the line of README.ko.md."""
    summary = VERBS[verb]
    assert summary[0].islower()
    assert not summary.endswith(".")
    assert len(summary) <= 70
    assert import_module(f"munjang.cli.{verb}").SUMMARY_KO
