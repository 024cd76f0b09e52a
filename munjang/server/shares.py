"""Fair shares: clients take turns by what each has used, and the one that used least goes first."""

from collections.abc import Iterable
from contextvars import ContextVar
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

# Who asks: a key, or an address. Set for each request by the middleware, read where its work waits for a turn
CLIENT: ContextVar[str] = ContextVar("client", default="")


def client_of(scope: "Scope") -> str:
    """Return who asks: a key, else an address (of IPv6 the half that a provider gives to one customer).

    >>> client_of({"client": ("2001:db8:1:2:3::4", 80)})
    '2001:0db8:0001:0002'
    """
    key = scope.get("state", {}).get("key")
    if key is not None and key.digest:
        return f"key {key.name}"
    address: str = (scope.get("client") or ("",))[0]
    return IPv6Address(address).exploded[:19] if ":" in address else address


class Shares:
    """Turns by use, in any unit. Idle time saves up nothing."""

    def __init__(self) -> None:
        self.used: dict[str, float] = {}
        self.least = 0.0  # what the client that was served last had used

    def enter(self, client: str) -> None:
        """Count a client in; a new one stands where the others are."""
        self.used[client] = max(self.used.get(client, 0.0), self.least)

    def next(self, clients: Iterable[str]) -> str:
        """Return the client whose turn it is."""
        return min(clients, key=lambda client: self.used.get(client, self.least))

    def charge(self, client: str, amount: float) -> None:
        """Count what a client has used. Who comes next stands before it, even if nothing was left for its turn."""
        before = self.used.get(client, self.least)
        if amount:
            self.least = max(self.least, before)
        self.used[client] = before + amount

    def forget(self, present: Iterable[str]) -> None:
        """Keep who is present, and who has used more than its share lately."""
        kept = set(present)
        self.used = {client: used for client, used in self.used.items() if client in kept or used > self.least}
