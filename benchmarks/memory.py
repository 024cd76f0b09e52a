"""Measure the memory that `munjang encode` needs for a large file, from disk to disk.    Linux only: it reads /proc.

    python -m benchmarks.memory [--count 250000 1000000] [--device cuda] [--texts FILE] [--model FOLDER] [--out FILE]

Every count is a process of its own. The memory is the host's: the highest that the process held after the model was
loaded, less what it held then; also by tenths of the rows, which shows whether it grows with them. What the first chunk
takes has more in it than texts and vectors: on a GPU, libraries and compilers that are first used there. The texts are
the rows of a file, or the repository's own; where there are too few they are repeated with a running number, so that no
two are equal and nothing is computed once for many.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.corpora import corpora
from benchmarks.models import add_model, fill_model
from munjang.data.tables import read_texts
from munjang.engine.measure import processor

Record = dict[str, Any]


def write_texts(path: Path, num_texts: int, data: Path | None, given: Path | None) -> None:
    """So many sentences, one a line: the first round as they are, then with the round's number before each."""
    base = [text for name, texts in corpora(2000, data).items() if "short" in name for text in texts]
    if given is not None and next(iter(read_texts(given)), None) is None:
        raise SystemExit(f"{given} has no texts; give another file")
    rounds = (read_texts(given) if given is not None else iter(base) for _ in count())
    numbered = chain.from_iterable(
        (f"{number} {text}" if number else text for text in texts) for number, texts in enumerate(rounds)
    )
    with path.open("w", encoding="utf-8") as file:
        for text in islice(numbered, num_texts):
            print(" ".join(text.split()), file=file)


def run(options: argparse.Namespace, num_texts: int, folder: Path) -> Record:
    """Write the texts, encode them in a process of its own, say what it took."""
    texts, vectors = folder / "texts.txt", folder / "vectors.npy"
    write_texts(texts, num_texts, options.data, options.texts)
    arguments = ["encode", str(texts), "-o", str(vectors), "--model", str(options.model), "--restart"]
    arguments += [*(["--dtype", options.dtype] if options.dtype else []), "--device", options.device]
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.memory_notes", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.perf_counter() - start
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": options.name,
        "texts": num_texts,
        "megabytes_read": round(texts.stat().st_size / 1e6, 1),
        "megabytes_written": round(vectors.stat().st_size / 1e6, 1),
        **summary([json.loads(line) for line in done.stdout.splitlines()]),
        "texts_per_s": round(num_texts / seconds, 1),
    }


def summary(notes: list[Record]) -> Record:
    """Return the peak in the notes of one process."""
    loaded, end = notes[0], notes[-1]
    chunks = [note["mb"] for note in notes if note["note"] == "chunk"]
    return {
        "device": loaded["device"],
        "dtype": loaded["dtype"].removeprefix("torch."),
        "loaded_mb": loaded["mb"],
        "peak_mb": end["mb"],
        "peak_by": loaded["way"],
        "above_loaded_mb": round(end["mb"] - loaded["mb"], 1),
        "above_first_chunk_mb": round(end["mb"] - chunks[0], 1),
        "above_loaded_mb_by_tenths_of_rows": [
            round(chunks[(len(chunks) - 1) * tenth // 10] - loaded["mb"], 1) for tenth in range(11)
        ],
        "resident_mb_when_loaded": loaded["resident"],
        "resident_mb_at_the_end": end["resident"],
        "pinned_mb": end["pinned"],
    }


def main() -> None:
    """Parse, measure, print, write after every run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model(parser)
    parser.add_argument("--count", type=int, nargs="+", default=[1_000_000], help="sentences, a run for each number")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", help="type to compute in; default: by device")
    parser.add_argument("--texts", type=Path, help="file of texts, as munjang encode reads; default: the repository's")
    parser.add_argument("--data", type=Path, help="folder with text/ and retrieval/; default: the repository's texts")
    parser.add_argument("--folder", type=Path, help="where texts and vectors may stand meanwhile (3.2 GB a million)")
    parser.add_argument("--out", type=Path, help="where to write the record as JSON")
    options = parser.parse_args()
    fill_model(options)
    record: Record = {
        "command": f"python -m benchmarks.memory {' '.join(sys.argv[1:])}",
        "machine": processor(torch.device(options.device.split(",")[0])),
        "host": processor(),
        "torch": torch.__version__,
        "runs": [],
    }
    for num_texts in options.count:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            found = run(options, num_texts, Path(folder))
        record["runs"].append(found)
        print(
            f"{num_texts:,} texts, {found['texts_per_s']:,.0f} a second: {found['above_loaded_mb']:,} MB above the "
            f"{found['loaded_mb']:,} MB of the loaded model, {found['above_first_chunk_mb']:,} of them after the first "
            f"chunk, for {found['megabytes_written']:,} MB of vectors"
        )
        print(json.dumps(found), flush=True)
        if options.out:
            options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
