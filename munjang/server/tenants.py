"""Keys of clients: a name, what they may do, which documents are theirs, how much they may ask; hashed at rest.

A file of keys is JSON and holds SHA-256 digests; the keys themselves are random, so nothing slower is needed. It is
read again when it changes, so `munjang keys revoke` needs no restart. Without any key everybody may do everything.
"""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from munjang.errors import InputError, unknown
from munjang.server.errors import Refused
from munjang.types import Scalar

SCOPES = ("read", "write", "admin")
ADMIN_PATHS = ("/metrics", "/keys")
WRITING_PATHS = ("/documents", "/files")
SECRET_BYTES = 32
PREFIX = "mj_"  # so that scanners of leaked secrets can know them
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}\Z")  # safe as a label of metrics and in a log
LOOK_S = 1.0  # between two looks at the file


@dataclass(frozen=True)
class Key:
    """The rights of one client. `indexes`: none for all. `only`: metadata that all of its documents have."""

    name: str
    digest: str = ""
    scopes: tuple[str, ...] = ("read",)
    indexes: tuple[str, ...] = ()
    only: Mapping[str, Scalar] = field(default_factory=dict)
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        if not NAME.match(self.name):
            raise InputError(f"{self.name!r} can't be the name of a key: 1 to 64 letters, digits and . _ @ -")
        for scope in self.scopes:
            if scope not in SCOPES:
                raise unknown("scope", scope, SCOPES)
        if not self.scopes:
            raise InputError(f"A key needs a scope: {', '.join(SCOPES)}.")
        for limit in (self.requests_per_minute, self.tokens_per_minute):
            if limit is not None and limit < 1:
                raise InputError(f"A limit of a minute must be at least 1, not {limit}.")

    def described(self) -> dict[str, Any]:
        """Return everything but the digest."""
        return {name: value for name, value in asdict(self).items() if name != "digest"}


EVERYONE = Key("everyone", scopes=SCOPES)  # of a server without keys


@dataclass
class Use:
    """The usage of a key since the start, and what is left of its minute."""

    num_requests: int = 0
    num_tokens: int = 0
    requests_left: float = 0.0
    tokens_left: float = 0.0
    filled_s: float | None = None  # when what is left was last added to

    def fill(self, key: Key, now_s: float) -> None:
        """Let what is left grow with time, up to a whole minute's."""
        minutes = 1.0 if self.filled_s is None else (now_s - self.filled_s) / 60
        self.filled_s = now_s
        for name, limit in (("requests_left", key.requests_per_minute), ("tokens_left", key.tokens_per_minute)):
            if limit is not None:
                setattr(self, name, min(limit, getattr(self, name) + minutes * limit))


class Keyring:
    """All keys of a server: those of a file, and plain ones that may do everything."""

    def __init__(self, plain: Sequence[str] = (), path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.used: dict[str, Use] = {}
        self._own = [Key(f"operator-{n}", digest_of(key), SCOPES) for n, key in enumerate(plain, 1)]
        self._keys: dict[str, Key] = {}
        self._stamp: tuple[int, int] | None = None
        self._looked_s = 0.0
        self._put(read_keys(self.path) if self.path is not None else [])

    @property
    def is_open(self) -> bool:
        """Tell whether no key is asked for."""
        return self.path is None and not self._own

    def listed(self) -> list[Key]:
        """Return the keys of the file as it is now."""
        self._look(0.0)
        return [key for key in self._keys.values() if key not in self._own]

    def admit(self, header: str, method: str, path: str) -> Key:
        """Return the key of an Authorization header; refuse what it may not do, or not now."""
        if self.is_open:
            return EVERYONE
        self._look(LOOK_S)
        scheme, _, sent = header.partition(" ")
        # digests of random keys: how long the look-up takes tells nothing of a key
        key = self._keys.get(digest_of(sent.strip())) if scheme.lower() == "bearer" else None
        if key is None:
            message = "Wrong or missing API key; send it as the header 'Authorization: Bearer KEY'."
            raise Refused("unauthorized", message, code="invalid_api_key")
        scope = needed_scope(method, path)
        if scope not in key.scopes:
            raise Refused("forbidden", f"The key {key.name} has no scope {scope!r}.", code="insufficient_scope")
        self._spend(key)
        return key

    def record(self, key: Key, num_tokens: int) -> None:
        """Add what a request has read; one that read more than was left makes the next ones wait."""
        use = self.use(key)
        use.num_tokens += num_tokens
        use.tokens_left -= num_tokens

    def use(self, key: Key) -> Use:
        """Return what a key has used."""
        return self.used.setdefault(key.name, Use())

    def _spend(self, key: Key) -> None:
        use = self.use(key)
        use.fill(key, time.monotonic())
        if key.requests_per_minute is not None and use.requests_left < 1:
            self._refuse(key, "requests", key.requests_per_minute, 1 - use.requests_left)
        if key.tokens_per_minute is not None and use.tokens_left <= 0:
            self._refuse(key, "tokens", key.tokens_per_minute, 1 - use.tokens_left)
        use.requests_left -= 1
        use.num_requests += 1

    def _refuse(self, key: Key, what: str, limit: int, missing: float) -> None:
        wait_s = max(1, min(3600, round(missing / limit * 60 + 0.5)))
        message = f"The key {key.name} may use {limit} {what} a minute; try again in {wait_s} s."
        raise Refused("overloaded", message, code="rate_limit_exceeded", retry_s=wait_s)

    def _look(self, after_s: float) -> None:
        """Read the file again if it has changed; one that can't be read leaves the keys as they are."""
        now_s = time.monotonic()
        if self.path is None or now_s - self._looked_s < after_s:
            return
        self._looked_s = now_s
        try:
            found = os.stat(self.path)
            stamp = (found.st_mtime_ns, found.st_ino)
            if stamp != self._stamp:
                self._put(read_keys(self.path))
                self._stamp = stamp
        except (OSError, InputError):
            return

    def _put(self, keys: Sequence[Key]) -> None:
        self._keys = {key.digest: key for key in [*keys, *self._own]}


def needed_scope(method: str, path: str) -> str:
    """Return the scope that a request needs.

    >>> needed_scope("POST", "/search"), needed_scope("DELETE", "/documents/a"), needed_scope("GET", "/metrics")
    ('read', 'write', 'admin')
    """
    start = "/" + path.lstrip("/").partition("/")[0]
    if start in ADMIN_PATHS:
        return "admin"
    return "write" if start in WRITING_PATHS and method not in ("GET", "HEAD") else "read"


def digest_of(secret: str) -> str:
    """Return the digest under which a key is kept."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> list[Key]:
    """Read a file of keys; one that isn't there holds none."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["keys"]
        keys = [_key(row) for row in rows]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is not a file of keys; make one with `munjang keys add {path} NAME`.") from None
    if len({key.name for key in keys}) < len(keys):
        raise InputError(f"{path} has two keys of one name.")
    return keys


def _key(row: Mapping[str, Any]) -> Key:
    """Make a key of a row of JSON, whose lists are tuples here."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Key(**values)


def add_key(path: Path, key: Key) -> str:
    """Add a key to a file and return its secret, which is kept nowhere."""
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    with _changing(path) as keys:
        if any(each.name == key.name for each in keys):
            raise InputError(f"{path} has a key named {key.name!r} already; revoke it first, or choose another name.")
        keys.append(Key(**{**key.described(), "digest": digest_of(secret)}))
    return secret


def revoke_key(path: Path, name: str) -> None:
    """Take a key out of a file."""
    with _changing(path) as keys:
        if name not in [key.name for key in keys]:
            raise unknown("key", name, [key.name for key in keys])
        keys[:] = [key for key in keys if key.name != name]


@contextmanager
def _changing(path: Path) -> Iterator[list[Key]]:
    """Write a file of keys anew, whole or not at all, one process after the other."""
    import fcntl

    with open(path.with_name(path.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        keys = read_keys(path)
        yield keys
        new = path.with_name(path.name + ".new")
        new.touch(mode=0o600)
        new.write_text(json.dumps({"keys": [asdict(key) for key in keys]}, indent=1, ensure_ascii=False) + "\n")
        os.replace(new, path)
