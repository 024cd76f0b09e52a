"""Parts of pages that are made while the site is built; to add one: a function and a line in PARTS."""

import argparse
import inspect
from dataclasses import fields
from importlib import import_module
from typing import Any

from docs.site.text import escaped
from munjang.cli import VERBS
from munjang.cli.options import parser_of


def commands() -> str:
    """Return every command with its examples and options, from its own parser."""
    return "\n\n".join(command(verb) for verb in VERBS)


def command(verb: str) -> str:
    """Return one command: what it does, examples, options."""
    module = import_module(f"munjang.cli.{verb}")
    _, _, examples = inspect.getdoc(module).partition("\n\n")  # type: ignore[union-attr]  # the documents need them
    parser = parser_of(module.Options, f"munjang {verb}", "")
    rows = [row(action) for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    table = ["| option | |", "|---|---|", *rows]
    summary = f"{VERBS[verb][0].upper()}{VERBS[verb][1:]}."
    return "\n\n".join([f"## {verb}", summary, f"```\n{examples.strip()}\n```", "\n".join(table)])


def row(action: argparse.Action) -> str:
    """Return the table row of one option."""
    names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.metavar or action.dest}`"
    text = (action.help or "").replace("%%", "%")
    if action.choices:
        text += f": {', '.join(f'`{choice}`' for choice in action.choices)}"
    return f"| {names} | {escaped(text)} |"


def settings(kind: type[Any]) -> str:
    """Return a table of a dataclass whose fields have a default and a help text."""
    lines = ["| setting | default | |", "|---|---|---|"]
    for each in fields(kind):
        default = "" if each.default in (None, ()) else f"`{each.default!r}`"
        lines.append(f"| `{each.name}` | {default} | {escaped(each.metadata.get('help', ''))} |")
    return "\n".join(lines)


def train_settings() -> str:
    """Return the settings of a training run."""
    from munjang.training.config import TrainConfig

    return settings(TrainConfig)


def http() -> str:
    """Return every route of the server with its fields, from its OpenAPI document."""
    from docs.site.http import routes

    return routes()


def compat_covered() -> str:
    """Return the names of munjang.compat, and the public methods of its classes."""
    from munjang import compat

    lines = ["| name | with |", "|---|---|"]
    for name in compat.__all__:
        thing = getattr(compat, name)
        if inspect.ismodule(thing):
            members = {each for each, member in vars(thing).items() if inspect.isfunction(member)}
        elif inspect.isclass(thing):  # without what torch and logging give every class of theirs
            own = [vars(base) for base in thing.__mro__ if base.__module__.startswith("munjang.")]
            members = {each for names in own for each, member in names.items() if callable(member) or is_shown(member)}
        else:
            members = set()
        shown = sorted(f"`{each}`" for each in members if not each.startswith("_"))
        lines.append(f"| `{name}` | {', '.join(shown)} |")
    return "\n".join(lines)


def is_shown(member: object) -> bool:
    """Tell whether a member of a class is a method or property."""
    return isinstance(member, property | classmethod | staticmethod)


def compat_gaps() -> str:
    """Return what munjang.compat refuses, by the way that its errors name."""
    from munjang.compat import gaps

    lines = ["| names | instead |", "|---|---|"]
    for way, names in [*gaps.NAMES.items(), *gaps.ATTRIBUTES.items()]:
        lines.append(f"| {', '.join(f'`{name}`' for name in sorted(names.split()))} | {escaped(way)} |")
    return "\n".join(lines)


def compat_differences() -> str:
    """Return why tests of sentence-transformers end otherwise, as `make compat-check` knows them."""
    from benchmarks.incumbent.differences import DIFFERENCES

    return "\n".join(f"- {reason}" for reason in DIFFERENCES)


PARTS = {
    "commands": commands,
    "train-settings": train_settings,
    "http": http,
    "compat-covered": compat_covered,
    "compat-gaps": compat_gaps,
    "compat-differs": compat_differences,
}
