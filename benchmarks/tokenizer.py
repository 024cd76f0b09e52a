"""Our tokenizer beside `tokenizers` on one core: the first texts it sees, many or a few a call, then once it is warm.

    python -m benchmarks.tokenizer MODEL_FOLDER TEXTS.txt[.xz] [--count 48000] [--out FILE.json]

Time of the process, not of the clock, so that a busy machine disturbs less. One thread each. Cold is the first call of
a tokenizer just read, with nothing kept from another one; both sides take turns, and the best of each counts. Small
calls are summed over the first texts, from a tokenizer just read; of theirs no ids are read, which would take longer.
"""

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["RAYON_NUM_THREADS"] = "1"  # read when tokenizers is loaded

from tokenizers import Tokenizer as RustTokenizer

from munjang import checkpoint
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.engine.tokenize import Texts
from munjang.text.lookup.spans import keys
from munjang.text.tokenizer import Tokenizer

COLD = 8192  # texts that count as the first ones
ROUNDS = 7
SMALL = {1: 1024, 8: 4096, 32: 4096, 256: 4096, 1024: 4096}  # texts a call: so many first texts in all
STRETCH = 16  # calls


def seconds(function: Callable[[list[str]], Any], texts: list[str]) -> float:
    """Return seconds of the processor, in all threads."""
    start = time.process_time()
    function(texts)
    return time.process_time() - start


def in_turn(function: Callable[[list[str]], Any], calls: list[list[str]]) -> float:
    """Seconds of the processor for calls one after the other."""
    start = time.process_time()
    for texts in calls:
        function(texts)
    return time.process_time() - start


def small_calls(state: str, texts: list[str], size: int) -> dict[str, float]:
    """Measure how many times as fast as theirs the first texts are, so many at a time.

    Both sides take turns. Best: of each stretch of calls the best of all rounds, summed; median: of the rounds.
    """
    calls = [texts[start : start + size] for start in range(0, min(SMALL[size], len(texts)), size)]
    stretches = [calls[start : start + STRETCH] for start in range(0, len(calls), STRETCH)]
    ours_s, theirs_s = [], []
    for _ in range(ROUNDS):
        theirs, ours = RustTokenizer.from_str(state), fresh(state)
        gc.collect()  # what is left of the round before
        theirs_s.append([in_turn(theirs.encode_batch_fast, some) for some in stretches])
        ours_s.append([in_turn(ours, some) for some in stretches])
    best = sum(map(min, zip(*theirs_s, strict=True))) / sum(map(min, zip(*ours_s, strict=True)))
    median = statistics.median(sum(their) / sum(our) for their, our in zip(theirs_s, ours_s, strict=True))
    return {"best": round(best, 2), "median": round(median, 2)}


def fresh(state: str) -> Tokenizer:
    """A tokenizer that knows nothing yet."""
    keys.cache_clear()  # they are drawn once a process
    return Tokenizer(RustTokenizer.from_str(state))


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path, help="one text a line")
    parser.add_argument("--count", type=int, default=48000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts = list(islice(read_texts(options.texts), options.count))
    state = checkpoint.load_bi(options.model).tokenizer.rust.to_str()
    windows = [texts[start : start + Texts.window] for start in range(0, len(texts), Texts.window)]
    cold_s, theirs_s = [], []
    for _ in range(ROUNDS):
        theirs_s.append(seconds(RustTokenizer.from_str(state).encode_batch_fast, texts[:COLD]))
        tokenizer = fresh(state)
        cold_s.append(seconds(tokenizer, texts[:COLD]))
    tokenizer(texts)
    warm_s = []
    for _ in range(ROUNDS):
        warm_s.append(sum(seconds(tokenizer, window) for window in windows))
        theirs_s.append(seconds(tokenizer.rust.encode_batch_fast, texts[:COLD]))
    rate = COLD / min(theirs_s)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "command": f"python -m benchmarks.tokenizer {options.model.name} {options.texts.name}",
        "texts": len(texts),
        "path": tokenizer.path,
        "tokenizers_per_s": round(rate),
        "cold_times": round(COLD / min(cold_s) / rate, 2),
        "warm_times": round(len(texts) / min(warm_s) / rate, 1),
        "cold_times_by_texts_a_call": {size: small_calls(state, texts, size) for size in SMALL},
    }
    print(json.dumps(record), flush=True)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
