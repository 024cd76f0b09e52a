"""All limits of the server: who may come in, how large a request may be, how much may wait for a model."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from munjang.errors import InputError, unknown
from munjang.server.errors import Refused
from munjang.server.tenants import Keyring

if TYPE_CHECKING:
    from starlette.types import Scope

OPEN_PATHS = ("/health", "/ready", "/ping")  # for monitoring: by any name, without a key
KIND_NAMES: dict[type, str] = {int: "whole number", float: "number"}
FILES = "/files"
PAGE, PAGE_FILES = "/", "/page/"  # without a key, which is typed in there; they hold nothing of the index


@dataclass(frozen=True)
class AccessRules:
    """Bounds of a connection: keys, hosts and the size of a body. No hosts: any name."""

    keyring: Keyring = field(default_factory=Keyring)
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "::1")
    max_body_bytes: int = 2_000_000  # of one request
    max_file_bytes: int = 32_000_000  # of a file that is uploaded
    body_timeout_s: float = 30.0  # for a body to arrive
    max_requests: int = 4096  # at the same time
    max_held_bytes: int = 256_000_000  # of the bodies of all requests that are here

    def check(self, scope: "Scope", headers: dict[str, str]) -> None:
        """Refuse a wrong host (a web page that was rebound to this address), a wrong key, a body that is too large."""
        if headers.get("upgrade", "").lower() == "websocket":
            raise Refused("invalid", "This server has no WebSocket; send a plain HTTP request.")
        if scope["path"] in OPEN_PATHS:
            return
        if self.hosts and host_name(headers.get("host", "")) not in self.hosts:
            raise Refused("host", "This server isn't known by that name; add the name with --allowed-host.")
        is_page = scope["method"] in ("GET", "HEAD") and (scope["path"] == PAGE or scope["path"].startswith(PAGE_FILES))
        if not is_page:
            key = self.keyring.admit(headers.get("authorization", ""), scope["method"], scope["path"])
            scope.setdefault("state", {})["key"] = key
        length = headers.get("content-length", "")
        if length.isdigit():
            self.check_size(scope["path"], int(length))

    def check_size(self, path: str, num_bytes: int) -> None:
        """Refuse a body above the limit."""
        is_file = path == FILES
        limit = self.max_file_bytes if is_file else self.max_body_bytes
        if num_bytes > limit:
            hint = "split it" if is_file else "send fewer texts at once"
            raise Refused("too_large", f"The request body is larger than {limit} bytes; {hint}.")


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds of connections: how many, and how long each may take to ask and to read."""

    max_connections: int = 4096  # fewer where the process may open fewer files
    max_connections_per_address: int = 1024  # a proxy in front of us is one address
    header_timeout_s: float = 10.0  # to send the head of a request, from the connection or the answer before
    idle_timeout_s: int = 5  # between an answer and the next request's first byte
    answer_timeout_s: float = 30.0  # to read an answer, and more for a large one:
    min_answer_bytes_per_s: int = 65_536  # that a client must read at least
    max_chunks: int = 10_000  # of a body that comes in chunks: taking 100,000 apart holds everyone for 1.5 s

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise InputError(f"{name} must be above 0, not {value}.")


@dataclass(frozen=True)
class RequestLimits:
    """Bounds of a request: the number and the length of its texts, the fields of each object in it."""

    max_texts: int = 2048  # of a request
    max_text_chars: int = 100_000  # of each text; or token ids
    max_query_chars: int = 4_000  # of a search: its words are looked for one by one
    max_tokens: int = 524_288  # of a request, as the model reads them
    max_numbers: int = 8_388_608  # of an answer
    max_fields: int = 256  # of a body, a document or its metadata

    def check(self, texts: Sequence[Any], param: str) -> None:
        """Refuse an empty request, and one above these limits."""
        if not texts:
            raise Refused("invalid", f"{param} is empty; give at least one text.", param=param)
        if len(texts) > self.max_texts:
            raise Refused("too_large", f"{len(texts)} texts; at most {self.max_texts} are allowed.", param=param)
        longest = max(map(len, texts))
        if longest > self.max_text_chars:
            message = f"A text has {longest} characters or tokens; at most {self.max_text_chars} are allowed."
            raise Refused("too_large", message, param=param)

    def check_query(self, query: str) -> None:
        """Refuse a query whose words would take long to look for."""
        if len(query) > self.max_query_chars:
            message = f"The query has {len(query)} characters; at most {self.max_query_chars} are allowed."
            raise Refused("too_large", message, param="query")

    def check_tokens(self, num_tokens: int, param: str) -> None:
        """Refuse a request that asks for too much computing."""
        if num_tokens > self.max_tokens:
            message = f"The texts have {num_tokens} tokens; at most {self.max_tokens} are allowed in one request."
            raise Refused("too_large", message, param=param)

    def check_numbers(self, num_vectors: int, dimension: int, param: str) -> None:
        """Refuse a request whose answer would be too large."""
        if num_vectors * dimension > self.max_numbers:
            message = f"{num_vectors} vectors of {dimension} numbers; at most {self.max_numbers} numbers are allowed."
            raise Refused("too_large", message, param=param)


@dataclass(frozen=True)
class QueueLimits:
    """Bounds of the queue of one model, and how its batches are packed."""

    max_batch_tokens: int = 4096  # that a model computes at once
    max_queue: int = 512  # requests, from arrival to answer
    max_wait_ms: int = 50  # that smaller requests may overtake one
    max_batch_ms: int = 100  # that a batch is computed, so that nobody waits longer for the next
    deadline_s: float = 10.0  # that a request may wait; one that would wait longer is refused at once

    def __post_init__(self) -> None:
        for name in ("max_batch_tokens", "max_queue", "max_batch_ms"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if not self.deadline_s > 0:
            raise InputError(f"deadline_s must be above 0, not {self.deadline_s}.")
        if self.max_wait_ms < 0:
            raise InputError(f"max_wait_ms must be at least 0, not {self.max_wait_ms}.")


@dataclass(frozen=True)
class Limits:
    """All limits that an operator may set, by name: `munjang serve --limit NAME=VALUE`."""

    access: AccessRules = field(default_factory=AccessRules)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
    requests: RequestLimits = field(default_factory=RequestLimits)
    queues: QueueLimits = field(default_factory=QueueLimits)

    def names(self) -> dict[str, str]:
        """Return the group of every limit, by the limit's name."""
        groups = {group.name: getattr(self, group.name) for group in fields(self)}
        return {
            limit.name: name
            for name, group in groups.items()
            for limit in fields(group)
            if isinstance(getattr(group, limit.name), int | float)
        }

    def changed(self, settings: Sequence[str]) -> "Limits":
        """Return limits with others in place, each given as NAME=VALUE."""
        groups, limits = self.names(), self
        for setting in settings:
            name, _, text = setting.partition("=")
            if name not in groups:
                raise unknown("limit", name, sorted(groups))
            group = getattr(limits, groups[name])
            kind = type(getattr(group, name))
            try:
                value = kind(text)
            except ValueError:
                raise InputError(f"--limit {name} takes a {KIND_NAMES[kind]}, not {text!r}.") from None
            if not 0 < value < float("inf"):
                raise InputError(f"--limit {name} must be above 0, not {text}.")
            limits = replace(limits, **{groups[name]: replace(group, **{name: value})})
        return limits


def host_name(header: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("[::1]:8080"), host_name("LocalHost:80")
    ('::1', 'localhost')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
