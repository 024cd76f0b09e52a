"""Our tokenizer beside `tokenizers` on one core: the first texts it sees, then once it is warm.

    python -m benchmarks.tokenizer MODEL_FOLDER TEXTS.txt[.xz] [--count 48000] [--out FILE.json]

Time of the process, not of the clock, so that a busy machine disturbs less. One thread each.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"  # read when tokenizers is loaded

from munjang import checkpoint
from munjang.data.tables import read_texts
from munjang.runtime.encoding import WINDOW
from munjang.runtime.measure import processor

COLD = 8192  # texts that count as the first ones


def seconds(function: Callable[[], Any]) -> float:
    """Of the processor, in all threads."""
    start = time.process_time()
    function()
    return time.process_time() - start


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, help="one text a line")
    parser.add_argument("--count", type=int, default=48000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts = list(islice(read_texts(options.texts), options.count))
    tokenizer = checkpoint.load_bi(options.model).tokenizer
    windows = [texts[start : start + WINDOW] for start in range(0, len(texts), WINDOW)]
    cold = COLD / seconds(lambda: tokenizer(texts[:COLD]))
    tokenizer(texts)
    warm = len(texts) / min(seconds(lambda: [tokenizer(window) for window in windows]) for _ in range(5))
    theirs = COLD / min(seconds(lambda: tokenizer.rust.encode_batch_fast(texts[:COLD])) for _ in range(3))
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "command": f"python -m benchmarks.tokenizer {options.model.name} {options.texts.name}",
        "texts": len(texts),
        "path": tokenizer.path,
        "tokenizers_per_s": round(theirs),
        "cold_times": round(cold / theirs, 2),
        "warm_times": round(warm / theirs, 1),
    }
    print(json.dumps(record), flush=True)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
