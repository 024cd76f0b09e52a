"""How much memory `munjang encode` needs for a large file, from disk to disk.    Linux only: it reads /proc.

    python -m benchmarks.memory [--count 1000000] [--dtype float32] [--texts FILE] [--folder FOLDER] [--out FILE.json]

The memory is the highest that the process ever held, less what it held as soon as the model was loaded; also by tenths
of the rows, which shows whether it grows with them. The texts are the lines of a file, or the repository's own,
repeated with a running number, so that no two are equal and nothing is computed once for many.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.corpora import corpora
from benchmarks.models import add_model, fill_model
from munjang.runtime.measure import processor

# The command as a user runs it; a note is taken when the model's `load` returns, behind every chunk, and at the end.
COMMAND = """
import sys
from munjang.bi_encoder import BiEncoder
from munjang.cli import main
from munjang.data.parts import Parts

def kilobytes(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name + ":"))

load = BiEncoder.load
def noting(*arguments, **options):
    model = load(*arguments, **options)
    print("loaded", kilobytes("VmRSS"), flush=True)
    return model
BiEncoder.load = noting
write = Parts.write
def noting_chunk(parts, number, vectors, texts=None):
    write(parts, number, vectors, texts)
    print("chunk", kilobytes("VmHWM"), flush=True)
Parts.write = noting_chunk
code = main(sys.argv[1:])
print("peak", kilobytes("VmHWM"), flush=True)
sys.exit(code)
"""


def write_texts(path: Path, count: int, data: Path | None, lines: Path | None) -> int:
    """`count` different sentences, one a line, or as many lines as a file has; gives their number."""
    if lines is not None:
        with lines.open(encoding="utf-8") as source, path.open("w", encoding="utf-8") as file:
            return sum(1 for line in islice(source, count) if file.write(line))
    base = [text for name, texts in corpora(2000, data).items() if "short" in name for text in texts]
    with path.open("w", encoding="utf-8") as file:
        for number, text in enumerate(islice(cycle(base), count)):
            print(f"{number} {' '.join(text.split())}", file=file)
    return count


def run(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Write the texts, encode them, say what it took."""
    texts, vectors = folder / "texts.txt", folder / "vectors.npy"
    count = write_texts(texts, options.count, options.data, options.texts)
    arguments = ["encode", str(texts), "-o", str(vectors), "--model", str(options.model), "--restart"]
    arguments += [*(["--dtype", options.dtype] if options.dtype else []), "--device", options.device]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", COMMAND, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.perf_counter() - start
    lines = [(name, int(kilobytes) * 1024 / 1e6) for name, kilobytes in map(str.split, done.stdout.splitlines())]
    notes, chunks = dict(lines), [megabytes for name, megabytes in lines if name == "chunk"]
    by_tenths = [round(chunks[(len(chunks) - 1) * tenth // 10] - notes["loaded"], 1) for tenth in range(11)]
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": f"python -m benchmarks.memory {' '.join(sys.argv[1:])}",
        "machine": processor(),
        "device": options.device,
        "dtype": options.dtype or "by device",
        "model": options.name,
        "texts": count,
        "megabytes_read": round(texts.stat().st_size / 1e6, 1),
        "megabytes_written": round(vectors.stat().st_size / 1e6, 1),
        "loaded_mb": round(notes["loaded"], 1),
        "peak_mb": round(notes["peak"], 1),
        "above_loaded_mb": round(notes["peak"] - notes["loaded"], 1),
        "above_loaded_mb_by_tenths_of_rows": by_tenths,
        "texts_per_s": round(count / seconds, 1),
    }


def main() -> None:
    """Parse, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model(parser)
    parser.add_argument("--count", type=int, default=1_000_000, help="sentences")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", help="type to compute in; default: by device")
    parser.add_argument("--texts", type=Path, help="file of one text a line; default: the repository's texts, numbered")
    parser.add_argument("--data", type=Path, help="folder with text/ and retrieval/; default: the repository's texts")
    parser.add_argument("--folder", type=Path, help="where texts and vectors may stand meanwhile (1.6 GB a million)")
    parser.add_argument("--out", type=Path, help="where to write the record as JSON")
    options = parser.parse_args()
    fill_model(options)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        record = run(options, Path(folder))
    print(
        f"{record['texts']:,} texts, {record['texts_per_s']:,.0f} a second: {record['above_loaded_mb']:,} MB above the "
        f"{record['loaded_mb']:,} MB of the loaded model, for {record['megabytes_written']:,} MB of vectors"
    )
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
