"""Parse a command line into a frozen dataclass: a field holds the name, type, default and help of its option.

A dataclass with a field `config: str | None` also reads a TOML file whose keys are field names; flags win.
"""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from munjang.errors import InputError, unknown
from munjang.options import option as option  # re-exported: commands import `option` and `parse` from here

T = TypeVar("T")
CONFIG = "config"  # the field that names a file of options


def parse(options: type[T], argv: list[str], prog: str, description: str) -> T:
    """Return the options that the arguments and the file of `--config` set.

    A wrong argument prints the usage and exits with 2, as argparse does; a wrong file raises InputError.
    """
    stated = _from_file(options, get_type_hints(options), argv)
    parser = parser_of(options, prog, description, stated)
    # Intermixed: `encode a.txt -o out.npy b.txt` is what people type.
    typed = vars(parser.parse_intermixed_args(argv))
    taken = {_group(options, name) for name in typed} - {None}  # --query wins over the file's prompt
    values = {name: value for name, value in stated.items() if _group(options, name) not in taken} | typed
    return options(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def parser_of(options: type[Any], prog: str, description: str, stated: Collection[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of a dataclass; a file has `stated` some options, which then are not required."""
    hints = get_type_hints(options)
    # No abbreviations: a script that uses --trunc would break with the next option that begins with it.
    parser = argparse.ArgumentParser(prog=prog, description=description, allow_abbrev=False)
    groups: dict[str, Any] = {}
    for each in fields(options):
        if _is_table(hints[each.name]):
            continue
        name = each.metadata["one_of"]
        if name is not None and name not in groups:
            groups[name] = parser.add_mutually_exclusive_group()
        target = parser if name is None else groups[name]
        target.add_argument(*_flags(each), **_settings(each, hints, each.name in stated))
    return parser


def _from_file(options: type[Any], hints: Mapping[str, Any], argv: list[str]) -> dict[str, Any]:
    """Return the checked values of the `--config` file; an empty dict if the command has no such option."""
    if CONFIG not in hints:
        return {}
    before = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    before.add_argument(f"--{CONFIG}", nargs="?")  # one without a value is left to the real parser
    path = before.parse_known_args(argv)[0].config
    if path is None:
        return {}
    names = [name for name in hints if name != CONFIG]
    stated = {}
    for key, value in read_toml(path).items():
        name = key.replace("-", "_")
        if name not in names:
            raise unknown(f"key of {path}", key, names)
        if name in stated:
            raise InputError(f"{path} gives {name} twice.")
        stated[name] = checked(f"{path}: {key}", value, hints[name])
    groups = [_group(options, name) for name in stated if stated[name] not in (False, None)]
    for group in set(groups) - {None}:
        if groups.count(group) > 1:
            both = [name for name in stated if _group(options, name) == group]
            raise InputError(f"{path} gives {' and '.join(both)}; at most one of them may be given.")
    return stated


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


def _is_table(hint: Any) -> bool:
    """Tell whether an option is a table of the file, which no flag can hold."""
    return dict in get_args(hint)


def _group(options: type[Any], name: str) -> str | None:
    group: str | None = options.__dataclass_fields__[name].metadata["one_of"]
    return group


def _flags(each: "Field[Any]") -> list[str]:
    if each.metadata["is_positional"]:
        return [each.name]
    short = each.metadata["short"]
    return [*([short] if short else []), "--" + each.name.replace("_", "-")]


def _settings(each: "Field[Any]", hints: Mapping[str, Any], is_stated: bool) -> dict[str, Any]:
    """Return argparse's settings, derived from type and default; `is_stated`: the file already sets the option."""
    hint = hints[each.name]
    is_required = each.default is MISSING and not is_stated
    text = each.metadata["help"]
    if each.default not in (MISSING, None, False, ()):
        text += f" (default: {each.default})"
    # no defaults here: argparse returns only what was typed, which wins over the file
    settings: dict[str, Any] = {"help": text.replace("%", "%%"), "default": argparse.SUPPRESS}
    is_optional = NoneType in get_args(hint)
    if is_optional:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    if each.metadata["metavar"]:
        settings["metavar"] = each.metadata["metavar"]
    if is_required and not each.metadata["is_positional"]:
        settings["required"] = True
    if hint is bool:  # three states where None is one of them: --normalize, --no-normalize, the model's own
        has_no = is_optional or CONFIG in hints  # a flag must be able to turn off what a file turned on
        return settings | {"action": argparse.BooleanOptionalAction if has_no else "store_true"}
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        nargs = ("+" if is_required else "*") if kinds[-1] is ... else len(kinds)
        # `--model a --model b` is `--model a b`
        repeats = {"action": "extend"} if kinds[-1] is ... and not each.metadata["is_positional"] else {}
        return settings | {"type": kinds[0], "nargs": nargs} | repeats
    if get_origin(hint) is Literal:
        return settings | {"choices": get_args(hint)}
    if each.metadata["is_positional"] and not is_required:
        settings["nargs"] = "?"
    return settings | {"type": hint}
