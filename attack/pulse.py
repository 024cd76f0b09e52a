"""Pulse: asks for /health all the time, in a process of its own that the attack's own work does not hold up."""

import asyncio
import http.client
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

WAIT_S = 60.0


@dataclass
class Pulse:
    """The seconds of each answer of /health while the block runs; infinity for one that is no 200."""

    port: int
    every_s: float = 0.05
    seconds: list[float] = field(default_factory=list)

    async def __aenter__(self) -> "Pulse":
        command = [sys.executable, "-m", "attack.pulse", str(self.port), str(self.every_s)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        await asyncio.to_thread(self._process.stdout.readline)  # it has begun
        return self

    async def __aexit__(self, *error: object) -> None:
        out, _ = await asyncio.to_thread(self._process.communicate, "\n")
        self.seconds += [float(line) for line in out.split()]

    def slowest_s(self) -> float:
        """Return the longest time that /health took."""
        return max(self.seconds, default=float("inf"))


def ask(port: int) -> float:
    """Return the seconds that /health takes."""
    start = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    try:
        connection.request("GET", "/health")
        is_fine = connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        is_fine = False
    finally:
        connection.close()
    return time.perf_counter() - start if is_fine else float("inf")


def main(port: int, every_s: float) -> None:
    """Ask until a line comes in."""
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    print("", flush=True)
    while not stop.is_set():
        print(ask(port))
        stop.wait(every_s)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
