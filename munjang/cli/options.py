"""Command-line options from a frozen dataclass: name, type, default and help of each are written once, in its field."""

import argparse
from dataclasses import MISSING, Field, field, fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def option(
    help: str,
    default: Any = MISSING,
    short: str | None = None,
    is_positional: bool = False,
    one_of: str | None = None,
    metavar: str | None = None,
) -> Any:
    """A dataclass field that is an option. At most one of those with the same `one_of` may be given.

    >>> @dataclass(frozen=True)
    ... class Options:
    ...     chunk_rows: int = option("rows of a chunk", default=4096)      # --chunk-rows 4096
    """
    metadata = {"help": help, "short": short, "is_positional": is_positional, "one_of": one_of, "metavar": metavar}
    return field(default=default, metadata=metadata)


def parse(options: type[T], argv: list[str], prog: str, description: str) -> T:
    """The options that these arguments give. A wrong argument prints the usage and exits with 2, as argparse does."""
    # No abbreviations: a script that says --trunc would break with the next option that begins so.
    parser = argparse.ArgumentParser(prog=prog, description=description, allow_abbrev=False)
    types = get_type_hints(options)
    groups: dict[str, Any] = {}
    for each in fields(options):  # type: ignore[arg-type]  # every caller passes a dataclass
        name = each.metadata["one_of"]
        if name is not None and name not in groups:
            groups[name] = parser.add_mutually_exclusive_group()
        target = parser if name is None else groups[name]
        target.add_argument(*_flags(each), **_settings(each, types[each.name]))
    # Intermixed: `encode a.txt -o out.npy b.txt` is what people type.
    values = vars(parser.parse_intermixed_args(argv))
    return options(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _flags(each: "Field[Any]") -> list[str]:
    if each.metadata["is_positional"]:
        return [each.name]
    short = each.metadata["short"]
    return [*([short] if short else []), "--" + each.name.replace("_", "-")]


def _settings(each: "Field[Any]", hint: Any) -> dict[str, Any]:
    """What argparse has to know, read from the type and the default."""
    is_required = each.default is MISSING
    text = each.metadata["help"]
    if each.default not in (MISSING, None, False, ()):
        text += f" (default: {each.default})"
    settings: dict[str, Any] = {"help": text.replace("%", "%%")}
    is_optional = NoneType in get_args(hint)
    if is_optional:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    if each.metadata["metavar"]:
        settings["metavar"] = each.metadata["metavar"]
    if not is_required:
        settings["default"] = each.default
    elif not each.metadata["is_positional"]:
        settings["required"] = True
    if hint is bool:  # three states where None is one of them: --normalize, --no-normalize, the model's own
        return settings | {"action": argparse.BooleanOptionalAction if is_optional else "store_true"}
    if get_origin(hint) is tuple:
        kinds = get_args(hint)
        nargs = ("+" if is_required else "*") if kinds[-1] is ... else len(kinds)
        return settings | {"type": kinds[0], "nargs": nargs}
    if get_origin(hint) is Literal:
        return settings | {"choices": get_args(hint)}
    return settings | {"type": hint}
