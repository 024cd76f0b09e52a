"""Parse a command line into a frozen dataclass: a field holds the name, type, default and help of its option."""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from munjang.cli.configuration import CONFIG, CONFIG_HELP, PRINT, PRINT_HELP, as_toml, group_of, stated_elsewhere
from munjang.options import option as option  # re-exported: commands import `option` and `parse` from here

T = TypeVar("T")


def parse(options: type[T], argv: list[str], prog: str, description: str) -> T:
    """Return the options that the arguments, the environment and the file of `--config` set.

    A wrong argument prints the usage and exits with 2, as argparse does; a wrong file raises InputError.
    `--print-config` prints them all and exits.
    """
    hints, verb = get_type_hints(options), prog.rpartition(" ")[2]
    stated = stated_elsewhere(options, hints, argv, verb)
    parser = parser_of(options, prog, description, stated)
    # Intermixed: `encode a.txt -o out.npy b.txt` is what people type.
    typed = vars(parser.parse_intermixed_args(argv))
    is_printed = typed.pop(PRINT, False)
    typed.pop(CONFIG, None)
    taken = {group_of(options, name) for name in typed} - {None}  # --query wins over the file's prompt
    values = {name: value for name, value in stated.items() if group_of(options, name) not in taken} | typed
    if is_printed:
        print(as_toml(options, values, verb))
        raise SystemExit(0)
    return options(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def parser_of(options: type[Any], prog: str, description: str, stated: Collection[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of a dataclass; `stated`: options that are given elsewhere, and so are not required."""
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
    parser.add_argument(f"--{CONFIG}", metavar="FILE", help=CONFIG_HELP, default=argparse.SUPPRESS)
    parser.add_argument("--print-config", action="store_true", help=PRINT_HELP, default=argparse.SUPPRESS)
    return parser


def _is_table(hint: Any) -> bool:
    """Tell whether an option is a table of the file, which no flag can hold."""
    return dict in get_args(hint)


class _Choices(tuple[Any, ...]):
    """Choices of an option; argparse asks whether what stands for a positional left out is among them."""

    def __contains__(self, value: object) -> bool:
        return value == argparse.SUPPRESS or super().__contains__(value)


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
        has_no = is_optional or not each.name.startswith("no_")  # a flag can turn off what a file turned on
        return settings | {"action": argparse.BooleanOptionalAction if has_no else "store_true"}
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        nargs = ("+" if is_required else "*") if kinds[-1] is ... else len(kinds)
        # `--model a --model b` is `--model a b`
        repeats = {"action": "extend"} if kinds[-1] is ... and not each.metadata["is_positional"] else {}
        return settings | {"type": kinds[0], "nargs": nargs} | repeats
    if each.metadata["is_positional"] and not is_required:
        settings["nargs"] = "?"
    if get_origin(hint) is Literal:
        return settings | {"choices": _Choices(get_args(hint))}
    return settings | {"type": hint}
