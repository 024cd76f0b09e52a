"""All limits of the server: who may come in, how large a request may be, how much may wait for a model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from munjang.errors import InputError
from munjang.server.errors import Refused
from munjang.server.tenants import Keyring

if TYPE_CHECKING:
    from starlette.types import Scope

OPEN_PATHS = ("/health", "/ready", "/ping")  # for monitoring: by any name, without a key
PAGE, PAGE_FILES = "/", "/page/"  # without a key, which is typed in there; they hold nothing of the index


@dataclass(frozen=True)
class AccessRules:
    """Bounds of a connection: keys, hosts and the size of a body. No hosts: any name."""

    keyring: Keyring = field(default_factory=Keyring)
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "::1")
    max_body_bytes: int = 2_000_000
    body_timeout_s: float = 30.0
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
        if length.isdigit() and int(length) > self.max_body_bytes:
            raise self.too_large()

    def too_large(self) -> Refused:
        """Return the error for a body above the limit."""
        message = f"The request body is larger than {self.max_body_bytes} bytes; send fewer texts at once."
        return Refused("too_large", message)


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds of connections: how many, and how long each may take to ask and to read."""

    max_connections: int = 4096  # fewer where the process may open fewer files
    max_connections_per_address: int = 1024  # a proxy in front of us is one address
    header_timeout_s: float = 10.0  # to send the head of a request, from the connection or the answer before
    idle_timeout_s: int = 5  # between an answer and the next request's first byte
    answer_timeout_s: float = 30.0  # to read an answer, and a second more for each of these bytes:
    min_answer_bytes_per_s: int = 65_536

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise InputError(f"{name} must be above 0, not {value}.")


@dataclass(frozen=True)
class RequestLimits:
    """Bounds of a request: the number and the length of its texts, the fields of each object in it."""

    max_texts: int = 2048
    max_text_chars: int = 100_000  # or token ids
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


@dataclass(frozen=True)
class QueueLimits:
    """Bounds of the queue of one model, and how its batches are packed."""

    max_batch_tokens: int = 4096  # that a model computes at once
    max_queue: int = 512  # requests, from arrival to answer
    max_wait_ms: int = 50  # that smaller requests may overtake one

    def __post_init__(self) -> None:
        for name in ("max_batch_tokens", "max_queue"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.max_wait_ms < 0:
            raise InputError(f"max_wait_ms must be at least 0, not {self.max_wait_ms}.")


def host_name(header: str) -> str:
    """Return the name in a Host header, without its port.

    >>> host_name("[::1]:8080"), host_name("LocalHost:80")
    ('::1', 'localhost')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
