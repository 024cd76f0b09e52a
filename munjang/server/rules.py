"""Rules of who may come in: allowed hosts, API keys, size of bodies."""

import hmac
from dataclasses import dataclass

from starlette.types import Scope

from munjang.server.errors import Refused

OPEN_PATHS = ("/health", "/ready")  # for who watches a server: by any name, without a key
PAGE, PAGE_FILES = "/", "/page/"  # without a key, which is typed in there; they hold nothing of the index


@dataclass(frozen=True)
class Rules:
    """Who may come in, with how much. No keys: everyone; no hosts: any name."""

    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "::1")
    max_body_bytes: int = 2_000_000
    body_timeout_s: float = 30.0
    max_requests: int = 4096  # here at once, their bodies in memory

    def check(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse a wrong host (a web page that was rebound to this address), a wrong key, and a body too large."""
        if scope["path"] in OPEN_PATHS:
            return
        if self.hosts and host_name(headers.get("host", "")) not in self.hosts:
            raise Refused("host", "This server isn't known by that name; start it with --allowed-host to add one.")
        is_page = scope["path"] == PAGE or scope["path"].startswith(PAGE_FILES)
        if self.keys and not is_page and not self.is_known(headers.get("authorization", "")):
            message = "Wrong or missing API key; send it as the header 'Authorization: Bearer KEY'."
            raise Refused("unauthorized", message, code="invalid_api_key")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > self.max_body_bytes:
            raise self.too_large()

    def is_known(self, header: str) -> bool:
        """Whether the header holds one of the keys; takes as long for any wrong one."""
        scheme, _, given = header.partition(" ")
        found = False
        for key in self.keys:
            found |= hmac.compare_digest(given.strip().encode(), key.encode())
        return found and scheme.lower() == "bearer"

    def too_large(self) -> Refused:
        """A body beyond the limit."""
        return Refused("too_large", f"The body is larger than {self.max_body_bytes} bytes; send fewer texts at once.")


def host_name(header: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("[::1]:8080"), host_name("LocalHost:80")
    ('::1', 'localhost')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()
