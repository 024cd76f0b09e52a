"""Compare the ids of the look-up on a device with those of `tokenizers` on hostile texts, on a GPU or a CPU.

    python -m benchmarks.gpu_tokenizer OUT.json FOLDER... [--count 1000000] [--device cuda] [--texts FILE.txt]

A folder is a model's, or a tokenizer.json alone. Every text is compared id by id; so are windows that are sorted and
packed there, single texts and pairs, with those of the host. Exits with 1 if any differs.
"""

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer as RustTokenizer

from munjang.engine.measure import processor
from munjang.text.device import SortedRow, finish, join
from munjang.text.flat import cumulative, gather
from munjang.text.lookup.device import DeviceLookup
from munjang.text.lookup.lookup import encode_whole
from munjang.text.tokenizer import Tokenizer, Tokens
from tests.texts import HOSTILE, hostile

WINDOW = 32768


def tokenizer_of(path: Path) -> Tokenizer:
    """Read the tokenizer of a model folder, or a tokenizer.json, with a limit that cuts some texts."""
    if path.is_file():
        return Tokenizer(RustTokenizer.from_file(str(path)), 24)
    settings = json.loads((path / "tokenizer_config.json").read_text(encoding="utf-8"))
    return Tokenizer.load(path, settings, 24)


def num_wrong(tokenizer: Tokenizer, lookup: DeviceLookup, texts: list[str]) -> int:
    """Count the texts with other ids than those of `tokenizers`."""
    ids, lengths = lookup(texts).to_host()
    wanted, wanted_lengths = encode_whole(tokenizer.rust, texts)
    if np.array_equal(ids, wanted) and np.array_equal(lengths, wanted_lengths):
        return 0
    sides = (np.split(flat, np.cumsum(sizes)[:-1]) for flat, sizes in ((ids, lengths), (wanted, wanted_lengths)))
    wrong = [row for row, (one, other) in enumerate(zip(*sides, strict=True)) if not np.array_equal(one, other)]
    print([texts[row] for row in wrong[:5]], flush=True)
    return max(len(wrong), 1)


def is_same(row: SortedRow, tokens: Tokens) -> bool:
    """Tell whether a sorted row holds these tokens."""
    ids = gather(tokens.ids, cumulative(tokens.lengths), row.rows_B, row.lengths)
    order = np.argsort(-tokens.lengths, kind="stable")
    is_cut = np.array_equal(tokens.cut_rows, row.cut_rows)
    return is_cut and np.array_equal(order, row.rows_B) and np.array_equal(ids, row.ids_T.cpu().numpy())


def check(path: Path, texts: list[str], device: torch.device) -> dict[str, Any]:
    """Compare all texts, and one window of sorted texts and pairs."""
    tokenizer = tokenizer_of(path)
    lookup = tokenizer.on(device)
    if lookup is None:
        return {"tokenizer": path.name, "path": tokenizer.path, "texts": 0, "wrong": 1}
    start = time.perf_counter()
    wrong = sum(num_wrong(tokenizer, lookup, texts[at : at + WINDOW]) for at in range(0, len(texts), WINDOW))
    some, others = texts[:WINDOW], texts[:WINDOW][::-1]
    rows = np.arange(len(some))
    with torch.inference_mode():
        bodies = lookup(some)
        is_finished = is_same(finish(bodies, tokenizer), tokenizer(some))
        is_joined = is_same(join(bodies, rows, rows[::-1], tokenizer), tokenizer.pairs(some, others))
    found = {
        "tokenizer": path.name if path.is_dir() else path.stem,
        "path": tokenizer.path,
        "texts": len(texts),
        "wrong": wrong,
        "windows_same": is_finished and is_joined,
        "seconds": round(time.perf_counter() - start, 1),
    }
    print(found, flush=True)
    return found


def main() -> int:
    """Compare all tokenizers and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--texts", type=Path, help="compare these too, one a line")
    options = parser.parse_args()
    device = torch.device(options.device)
    more = options.texts.read_text(encoding="utf-8").split("\n") if options.texts else []
    texts = [*HOSTILE, *hostile(options.count, seed=7), *more]
    checks = [check(folder, texts, device) for folder in options.folders]
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python -m benchmarks.gpu_tokenizer", *sys.argv[1:]]),
        "machine": processor(device),
        "torch": torch.__version__,
        "checks": checks,
    }
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    return int(any(each["wrong"] or not each["windows_same"] for each in checks))


if __name__ == "__main__":
    sys.exit(main())
