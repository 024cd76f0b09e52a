"""`munjang encode` as a user runs it, noting the memory of this process: one JSON object a line on standard output.

    python -m benchmarks.memory_notes encode TEXTS -o VECTORS ...        started by benchmarks.memory

A note is taken when the model is loaded, behind every chunk, and at the end. Linux only.
"""

import json
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.data.blocks import Blocks

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
PARTS = {"anonymous": "RssAnon", "files": "RssFile", "shared": "RssShmem"}  # of what is resident


def megabytes(name: str) -> float | None:
    """A line of the kernel's account of this process; None where it has no such line."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return round(int(lines[name].split()[0]) * 1024 / 1e6, 1) if name in lines else None


class Peak:
    """The highest resident memory since this was made: the kernel's own mark, or looked at a hundred times a second."""

    def __init__(self) -> None:
        self.seen = megabytes("VmRSS") or 0.0
        try:
            RESET.write_text("5")  # what loading took for a moment is not counted
            self.way = "the kernel's mark" if megabytes("VmHWM") is not None else "samples"
        except OSError:  # a sandbox without it
            self.way = "samples"
        self.is_over = threading.Event()
        if self.way == "samples":
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self.is_over.wait(0.01):
            self.look()

    def look(self) -> float:
        """The peak so far."""
        self.seen = max(self.seen, megabytes("VmRSS" if self.way == "samples" else "VmHWM") or 0.0)
        return self.seen


def note(name: str, **values: Any) -> None:
    print(json.dumps({"note": name, **values}), flush=True)


def resident() -> dict[str, float | None]:
    """Return resident memory by kind: libraries that are read are files."""
    return {name: megabytes(line) for name, line in PARTS.items()}


def pinned() -> float | None:
    """The most that torch took of memory from which a GPU copies by itself; None without a GPU or with an old torch."""
    if not torch.cuda.is_available() or not hasattr(torch.cuda, "host_memory_stats"):
        return None
    return round(torch.cuda.host_memory_stats().get("allocated_bytes.peak", 0) / 1e6, 1)


def run(arguments: list[str]) -> int:
    """The command, with notes."""
    peaks: list[Peak] = []
    load, write = BiEncoder.load, Blocks.write

    def noting(*given: Any, **options: Any) -> BiEncoder:
        model = load(*given, **options)
        now = megabytes("VmRSS")
        peaks.append(Peak())
        note("loaded", mb=now, resident=resident(), way=peaks[0].way, device=str(model.device), dtype=str(model.dtype))
        return model

    def noting_chunk(parts: Blocks, *given: Any) -> None:
        write(parts, *given)
        note("chunk", mb=peaks[0].look())

    BiEncoder.load, Blocks.write = noting, noting_chunk  # type: ignore[method-assign,assignment]
    code = main(arguments)
    note("end", mb=peaks[0].look() if peaks else None, resident=resident(), pinned=pinned())
    return code


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
