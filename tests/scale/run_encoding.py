"""An encoding run in a process of its own, which can be killed: python -m ... MODEL INPUT OUT [ADDRESS]

Every worker writes a line to ENCODING_LOG/its process id before it computes a block and one after it is written;
SLOW_S makes every block take that long.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from munjang.errors import CheckpointError
from munjang.scale.command import Request, encode_on_ray
from munjang.scale.job import Job
from munjang.scale.worker import BlockSummary, Worker


class Logging(Worker):
    """Says what it does."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.log = Path(os.environ["ENCODING_LOG"]) / str(os.getpid())

    def compute(self, block: Any) -> Any:
        self.say("compute", block.name)
        time.sleep(float(os.environ.get("SLOW_S", "0")))
        return super().compute(block)

    def _write(self, *given: Any) -> BlockSummary:
        done = super()._write(*given)
        self.say("wrote", done.name)
        return done

    def say(self, *words: str) -> None:
        with self.log.open("a") as file:
            file.write(" ".join(words) + "\n")


class Refusing(Worker):
    """Does nothing, and says why with an address that has a key in it."""

    def compute(self, block: Any) -> Any:
        raise CheckpointError("no more of 's3://key:hunter2@bucket/x'")


def main(model: str, source: str, output: str, address: str | None) -> None:
    request = Request(
        inputs=[source], output=output, model=model, address=address, block_rows=20, threads=1, text_hash=True
    )
    manifest = encode_on_ray(request, Logging)
    print(manifest.num_rows, manifest.num_bad)


if __name__ == "__main__":
    from tests.scale import run_encoding  # the class under a name that workers can import

    run_encoding.main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4] if len(sys.argv) > 4 else None)
