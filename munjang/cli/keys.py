"""munjang keys ACTION FILE ...: make, list and revoke the keys of a server's clients.

munjang keys add keys.json alice --scope read write --only tenant=alice
munjang keys add keys.json search-page --requests-per-minute 600 --tokens-per-minute 100000
munjang keys list keys.json
munjang keys revoke keys.json alice              a server with --keys keys.json notices within a second
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from munjang.cli.options import option
from munjang.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from munjang.types import Scalar  # numpy comes with it

SUMMARY_KO = "서버 이용자의 열쇠를 만들고, 보고, 거두기"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of `munjang keys`."""

    action: Literal["add", "list", "revoke"] = option("add, list or revoke", is_positional=True, metavar="ACTION")
    file: str = option("file of keys, for `munjang serve --keys`; it holds hashes alone", is_positional=True)
    name: str | None = option("name of the key, as logs and metrics show it", default=None, is_positional=True)
    scope: tuple[str, ...] = option(
        "what it may do: read (embed, re-rank, search), write (documents), admin (metrics, keys)", default=("read",)
    )
    index: tuple[str, ...] = option("names of the indexes that it may use (default: all)", default=())
    only: tuple[str, ...] = option(
        "metadata that all of its documents have, as FIELD=VALUE: it sees no others, and writes no others", default=()
    )
    requests_per_minute: int | None = option("requests that it may send a minute (default: any)", default=None)
    tokens_per_minute: int | None = option("tokens that the server reads for it a minute (default: any)", default=None)


def run(options: Options) -> int:
    """Change or show a file of keys."""
    try:
        from munjang.server.tenants import Key, add_key, read_keys, revoke_key
    except ImportError:
        raise MissingExtra("fastapi", "server", "Keys of a server") from None

    path = Path(options.file)
    if options.action == "list":
        for key in read_keys(path):
            print(json.dumps(key.described(), ensure_ascii=False))
        return 0
    if options.name is None:
        raise InputError(f"Which key? Give a name: munjang keys {options.action} {options.file} NAME")
    if options.action == "revoke":
        revoke_key(path, options.name)
        return 0
    only = dict(map(_pair, options.only))
    limits = (options.requests_per_minute, options.tokens_per_minute)
    print(add_key(path, Key(options.name, "", options.scope, options.index, only, *limits)))
    return 0


def _pair(given: str) -> "tuple[str, Scalar]":
    """Read FIELD=VALUE: true, false and numbers as such; "2020" in quotes is a text."""
    name, sign, text = given.partition("=")
    if not (name and sign and text):
        raise InputError(f"--only {given}: expected FIELD=VALUE, such as tenant=alice")
    try:
        value = json.loads(text)
    except ValueError:
        return name, text
    return name, value if isinstance(value, str | int | float | bool) else text
