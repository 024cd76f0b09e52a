"""Options from elsewhere than the command line: a TOML file, and MUNJANG_VERB_OPTION in the environment.

A file has a table for each verb, such as [serve], or just the options of the one verb that it is given to. Flags win
over the environment, which wins over the file.
"""

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from munjang.errors import InputError, unknown

CONFIG, PRINT = "config", "print_config"
CONFIG_HELP = (
    "TOML file of options, with a table for each verb or for this one alone (or set MUNJANG_CONFIG); flags win"
)
PRINT_HELP = "print all options with their values as TOML, and exit"
VERBS = {path.stem for path in Path(__file__).parent.glob("[a-z]*.py")} - {"configuration", "options", "corpus"}
FILE_VARIABLE = "MUNJANG_CONFIG"
TRUTH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def stated_elsewhere(options: type[Any], hints: Mapping[str, Any], argv: list[str], verb: str) -> dict[str, Any]:
    """Return the checked values of the file and of the environment."""
    before = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    before.add_argument(f"--{CONFIG}", nargs="?")  # one without a value is left to the real parser
    path = before.parse_known_args(argv)[0].config or os.environ.get(FILE_VARIABLE)
    stated = {} if path is None else _from_file(options, hints, path, verb)
    set_here = _from_environment(hints, verb)
    taken = {group_of(options, name) for name in set_here} - {None}
    return {name: value for name, value in stated.items() if group_of(options, name) not in taken} | set_here


def _from_file(options: type[Any], hints: Mapping[str, Any], path: str, verb: str) -> dict[str, Any]:
    stated = {}
    for key, value in _table(read_toml(path), path, verb).items():
        name = key.replace("-", "_")
        if name not in hints:
            raise unknown(f"key of {path}", key, hints)
        if name in stated:
            raise InputError(f"{path} gives {name} twice.")
        stated[name] = checked(f"{path}: {key}", value, hints[name])
    groups = [group_of(options, name) for name in stated if stated[name] not in (False, None)]
    for group in set(groups) - {None}:
        if groups.count(group) > 1:
            both = [name for name in stated if group_of(options, name) == group]
            raise InputError(f"{path} gives {' and '.join(both)}; at most one of them may be given.")
    return stated


def _table(content: dict[str, Any], path: str, verb: str) -> dict[str, Any]:
    """Return the table of a verb, or the whole file where it has no tables of verbs."""
    tables = [key for key, value in content.items() if key in VERBS and isinstance(value, dict)]
    if not tables:
        return content
    for key in content:
        if key not in tables:
            raise unknown(f"table of {path}", key, VERBS)
    table: dict[str, Any] = content.get(verb, {})
    return table


def _from_environment(hints: Mapping[str, Any], verb: str) -> dict[str, Any]:
    start, stated = f"MUNJANG_{verb.upper()}_", {}
    for variable in sorted(os.environ):
        if not variable.startswith(start):
            continue
        name = variable.removeprefix(start).lower()
        if name not in hints:
            raise unknown("environment variable", variable, [start + each.upper() for each in hints])
        stated[name] = checked(variable, _read(os.environ[variable], hints[name]), hints[name])
    return stated


def _read(text: str, hint: Any) -> Any:
    """Read a value of the environment; a list is separated by commas, or written as in TOML."""
    import tomllib

    (kind,) = [kind for kind in get_args(hint) if kind is not NoneType] if NoneType in get_args(hint) else [hint]
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        if text.startswith("["):
            try:
                return tomllib.loads(f"value = {text}")["value"]
            except tomllib.TOMLDecodeError:
                return text
        return [_read(each.strip(), inner) for each in text.split(",") if each.strip()]
    try:
        return TRUTH[text.lower()] if kind is bool else kind(text) if kind in (int, float) else text
    except (KeyError, ValueError):
        return text  # `checked` says what it should be


def read_toml(path: str) -> dict[str, Any]:
    """Read a TOML file; raise InputError with the position if it is invalid."""
    import tomllib

    with open(path, "rb") as file:
        try:
            return tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not valid TOML: {error}") from None


def checked(what: str, value: Any, hint: Any) -> Any:
    """Return a value of a file converted to the type of its option; raise InputError if it doesn't fit."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if NoneType in get_args(hint) else [hint]
    (kind,) = kinds
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise unknown(f"value of {what}", value, map(str, get_args(kind)))
        return value
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        is_any = inner[-1] is ...
        if not isinstance(value, list) or not (is_any or len(value) == len(inner)):
            raise InputError(f"{what} should be a list{'' if is_any else f' of {len(inner)}'}, not {value!r:.60}.")
        return tuple(checked(what, item, inner[0]) for item in value)
    allowed = (int, float) if kind is float else (kind,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{what} should be of type {kind.__name__}, not {value!r:.60}.")
    return kind(value)


def group_of(options: type[Any], name: str) -> str | None:
    """Return the group of options of which at most one may be given."""
    group: str | None = options.__dataclass_fields__[name].metadata["one_of"]
    return group


def as_toml(options: type[Any], values: Mapping[str, Any], verb: str) -> str:
    """Write the table of a verb: what is set, or by default, and as comments what has no value."""
    lines = [f"[{verb}]"]
    for each in fields(options):
        value = values.get(each.name, None if each.default is MISSING else each.default)
        lines.append(f"# {each.name} =" if value is None else f"{each.name} = {_written(value)}")
    return "\n".join(lines)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {_written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    # JSON's texts are TOML's, but for one control character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
