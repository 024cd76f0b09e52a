"""Progress on standard error: the number done, the rate and the time left."""

import sys
import threading
import time
from types import TracebackType

MIN_SHOWN_S = 2.0  # nothing is shown of work that ends sooner
TERMINAL_INTERVAL_S = 0.2  # between updates of the one line on a terminal
LOG_INTERVAL_S = 10.0  # between lines in a log file


class Progress:
    """A counter of finished work on standard error. `enabled=None`: only on a terminal; True: also as lines of a log.

    >>> with Progress(total=64, label="encoding") as progress:
    ...     progress.advance(32)
    """

    def __init__(self, total: int | None = None, label: str = "", enabled: bool | None = None) -> None:
        self.total = total
        self.label = label
        self.is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.enabled = sys.stderr is not None and (self.is_terminal if enabled is None else enabled)
        self.done = 0
        self.num_skipped = 0
        self._lock = threading.Lock()  # the pipeline's threads advance it too
        self._started = time.monotonic()
        self._next = self._started + MIN_SHOWN_S
        self._shown = False

    def advance(self, n: int = 1) -> None:
        """Count `n` more."""
        with self._lock:
            self.done += n
            now = time.monotonic()
            if self.enabled and now >= self._next:
                self._next = now + (TERMINAL_INTERVAL_S if self.is_terminal else LOG_INTERVAL_S)
                self._show("\r\x1b[K" if self.is_terminal else "", "" if self.is_terminal else "\n")

    def skip(self, n: int) -> None:
        """Count `n` that were done before and do not count for the rate."""
        with self._lock:
            self.done += n
            self.num_skipped += n

    def close(self) -> None:
        """End the line, if one was shown."""
        with self._lock:
            if self._shown:
                self._show("\r\x1b[K" if self.is_terminal else "", "\n")
            self.enabled = self._shown = False

    def __str__(self) -> str:
        rate = (self.done - self.num_skipped) / max(time.monotonic() - self._started, 1e-9)
        of = f"/{self.total:,} ({self.done / max(self.total, 1):.0%})" if self.total is not None else ""
        left = ""
        if self.total is not None and rate > 0 and self.done < self.total:
            left = f", {_duration((self.total - self.done) / rate)} left"
        return f"{self.label}: {self.done:,}{of}, {rate:,.{0 if rate >= 10 else 1}f}/s{left}"

    def _show(self, before: str, after: str) -> None:
        try:
            print(f"{before}{self}", end=after, file=sys.stderr, flush=True)
            self._shown = True
        except OSError:  # the terminal went away; the work goes on
            self.enabled = self._shown = False

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _duration(seconds: float) -> str:
    """Format a duration in at most two units.

    >>> _duration(3723)
    '1 h 02 min'
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
