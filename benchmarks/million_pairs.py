"""The most similar pairs of a million sentences, from strings to the pairs, and how many of them were missed.

    python -u -m benchmarks.million_pairs TEXTS... [--count 1000000] [--pairs 1000000] [--model FOLDER] [--out OUT.json]

TEXTS are files with one sentence a line (.txt, .xz ...), or tables whose columns `--columns` names; each sentence is
taken once. Of a sample of sentences all cosines are looked at afterwards: every pair above the lowest one that was
found should be among those found.
"""

import argparse
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang import BiEncoder
from munjang.data.reading import read_examples
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.errors import InputError
from munjang.tasks.paraphrases.mining import Pairs, mine

SAMPLE = 2000
ROUNDING = 1e-5  # of two ways to compute a cosine


def sentences(paths: list[Path], columns: list[str]) -> Iterator[str]:
    """All of them, each once."""
    seen: set[str] = set()
    for path in paths:
        is_table = ".tsv" in path.name
        texts = (text for column in columns for text in read_examples(path, texts=(column,)).texts[0])
        for text in texts if is_table else read_texts(path):
            if text.strip() and text not in seen:
                seen.add(text)
                yield text


def missed(vectors_ND: np.ndarray, pairs: Pairs, device: torch.device) -> dict[str, int]:
    """Pairs of a sample above the lowest score found, and how many of them were not."""
    rows = np.sort(np.random.default_rng(1).permutation(len(vectors_ND))[:SAMPLE])
    every = torch.from_numpy(vectors_ND).to(device)
    first, second = pairs.first_P, pairs.second_P
    found = set((np.minimum(first, second) * len(vectors_ND) + np.maximum(first, second)).tolist())
    lowest = float(pairs.scores_P.min()) + ROUNDING
    count = lost = 0
    for some in np.array_split(rows, max(1, len(rows) // 200)):
        cosines = every[torch.from_numpy(some).to(device)] @ every.T
        at, other = (part.cpu().numpy() for part in torch.nonzero(cosines >= lowest, as_tuple=True))
        one, other = some[at][some[at] != other], other[some[at] != other]
        keys = np.minimum(one, other) * len(vectors_ND) + np.maximum(one, other)
        count, lost = count + len(keys), lost + sum(key not in found for key in keys.tolist())
    return {"pairs_of_sample": count, "missed": lost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--columns", nargs="+", default=["en", "ko"], help="of tables")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--model", type=Path, help="default: the bundled one")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    texts = list(islice(sentences(options.texts, options.columns), options.count))
    if len(texts) < options.count:
        raise InputError(f"{len(texts):,} different sentences in these files; --count asks for {options.count:,}.")
    model = BiEncoder.load(options.model, options.device)
    model.encode(texts[:2000])  # kernels are compiled once
    print(f"{len(texts):,} sentences", flush=True)

    start = time.perf_counter()
    vectors = model.encode(texts, normalize=True, progress=False)
    encoded = time.perf_counter()
    pairs = mine(vectors, None, options.pairs, device=options.device, progress=False)
    end = time.perf_counter()
    record: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(model.device),
        "model": str(options.model or "ko-en-small"),
        "dtype": str(model.dtype).removeprefix("torch."),
        "sentences": len(texts),
        "pairs": len(pairs),
        "seconds": round(end - start, 2),
        "seconds_encoding": round(encoded - start, 2),
        "lowest": float(pairs.scores_P.min()),
        **missed(vectors, pairs, model.device),
    }
    print(json.dumps(record), flush=True)
    for pair in islice(pairs, 0, len(pairs), max(1, len(pairs) // 5)):
        print(f"{pair.score:.4f}  {texts[pair.first][:60]}  |  {texts[pair.second][:60]}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
