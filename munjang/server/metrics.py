"""Metrics in Prometheus' text format, under text-embeddings-inference's names where they mean the same."""

from bisect import bisect_left
from collections.abc import Mapping

SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZE_BUCKETS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0)
# name: (type, help, upper ends of a histogram's buckets)
NAMES: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "te_request_count": ("counter", "Requests, by path.", ()),
    "te_request_success": ("counter", "Requests that were answered, by path.", ()),
    "te_request_failure": ("counter", "Requests that were refused or failed, by status.", ()),
    "te_request_cancelled": ("counter", "Requests whose client went away.", ()),
    "te_request_duration": ("histogram", "Seconds from a request to its answer.", SECONDS_BUCKETS),
    "te_embed_count": ("counter", "Texts and pairs that were computed, by model.", ()),
    "te_batch_count": ("counter", "Batches, by model.", ()),
    "te_batch_next_size": ("histogram", "Texts and pairs of a batch.", SIZE_BUCKETS),
    "te_batch_next_tokens": ("histogram", "Tokens of a batch.", SIZE_BUCKETS),
    "te_request_inference_duration": ("histogram", "Seconds of computing a batch.", SECONDS_BUCKETS),
    "munjang_key_requests": ("counter", "Requests, by the name of their key and by status.", ()),
    "munjang_key_tokens": ("counter", "Tokens that were read, by the name of the key.", ()),
    "te_queue_size": ("gauge", "Requests that wait or are computed, by model.", ()),
}
Labels = tuple[tuple[str, str], ...]


class Histogram:
    """Counts values by the bucket that they fall into."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: Labels) -> list[str]:
        """Write it for Prometheus: every bucket holds those below it too."""
        total, lines = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            lines.append(f"{name}_bucket{_shown((*labels, ('le', bound)))} {total}")
        return [*lines, f"{name}_sum{_shown(labels)} {self.sum!r}", f"{name}_count{_shown(labels)} {total}"]


class Metrics:
    """Counters and histograms of one server; for the event loop's thread."""

    def __init__(self) -> None:
        self.counters: dict[tuple[str, Labels], float] = {}
        self.histograms: dict[tuple[str, Labels], Histogram] = {}

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter."""
        key = (name, tuple(labels.items()))
        self.counters[key] = self.counters.get(key, 0) + amount

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add a value to a histogram."""
        key = (name, tuple(labels.items()))
        if key not in self.histograms:
            self.histograms[key] = Histogram(NAMES[name][2])
        self.histograms[key].add(value)

    def text(self, queue_sizes: Mapping[str, int]) -> str:
        """Write everything, for a scrape."""
        gauges: dict[tuple[str, Labels], float] = {
            ("te_queue_size", (("model", name),)): size for name, size in queue_sizes.items()
        }
        lines: list[str] = []
        for name, (kind, help, _) in NAMES.items():
            lines += [f"# HELP {name} {help}", f"# TYPE {name} {kind}"]
            for values in (self.counters, gauges):
                lines += [f"{key}{_shown(labels)} {value:g}" for (key, labels), value in values.items() if key == name]
            for (key, labels), histogram in self.histograms.items():
                lines += histogram.lines(key, labels) if key == name else []
        return "\n".join(lines) + "\n"


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    parts = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return "{" + ",".join(parts) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
