"""int8 beside float32 by model, CPU kind and corpus: cosines, and times as fast.

    python -m benchmarks.int8 --data FOLDER [--models FOLDER] [--out FILE.json] [--rounds 3] [--count 100]

Every CPU kind has a process of its own, as oneDNN chooses its kernels at start: this machine's, and a weaker one
without AVX-512, which ONEDNN_MAX_CPU_ISA and ATEN_CPU_CAPABILITY emulate. Both dtypes take turns in it. --models holds
further checkpoints, each a folder; all-MiniLM-L6-v2 and the bundled models are always measured. docs/guides/load.md
shows the record (`make docs FIX=1` writes its table).
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.corpora import FILES, shuffled
from benchmarks.models import add_model, fill_model
from munjang.data.tables import read_texts
from munjang.engine.measure import processor

KINDS = {
    "as it is": {},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}
RECORD = Path(__file__).parent / "results/int8.json"
BUNDLED = ("ko-en-small", "ko-en-reranker")


def texts_of(data: Path, count: int) -> dict[str, list[str]]:
    """Natural text by corpus: sentences, and a quarter as many passages."""
    found = {name: shuffled(read_texts(data / path), 40 * count)[:count] for name, path in FILES.items()}
    return {name: texts[: count // 4] if "long" in name else texts for name, texts in found.items()}


def measure(name: str, folder: str | None, corpora: dict[str, list[str]], rounds: int) -> dict[str, Any]:
    """One model in both dtypes: cosines of its vectors (correlation of a re-ranker's scores), and times float32."""
    from munjang import BiEncoder, CrossEncoder
    from munjang.nn.prepacked import Exact

    is_pairs = name == "ko-en-reranker"
    kind = CrossEncoder if is_pairs else BiEncoder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = {dtype: kind.load(folder, device="cpu", dtype=dtype) for dtype in ("float32", "int8")}
        blocks = models["int8"].network.encoder.blocks
        rows = {}
        for corpus, texts in corpora.items():
            given = [(random.Random(1).choice(texts)[:80], text) for text in texts] if is_pairs else texts
            outputs, seconds = {}, {dtype: [] for dtype in models}
            for _ in range(rounds):
                for dtype, model in models.items():
                    start = time.perf_counter()
                    # unit vectors; a re-ranker's raw scores
                    outputs[dtype] = (
                        model.predict(given, activation="Identity") if is_pairs else model.encode(given, normalize=True)
                    )
                    seconds[dtype].append(time.perf_counter() - start)
            rows[corpus] = _closeness(outputs["float32"], outputs["int8"], is_pairs)
            rows[corpus]["times_float32"] = round(min(seconds["float32"]) / min(seconds["int8"]), 2)
    exact = sum(isinstance(block.qkv.prepacked, Exact) for block in blocks)
    return {"layers": len(blocks), "layers_in_float32": exact, "corpora": rows}


def _closeness(exact: np.ndarray, found: np.ndarray, is_pairs: bool) -> dict[str, float]:
    if is_pairs:
        return {"correlation": round(float(np.corrcoef(exact, found)[0, 1]), 5)}
    cosines = (exact * found).sum(1)
    return {"mean": round(float(cosines.mean()), 5), "smallest": round(float(cosines.min()), 4)}


def run() -> dict[str, Any]:
    """Every CPU kind in a process of its own."""
    from munjang.nn.cpu import has_vnni

    kinds = {}
    for kind, environment in KINDS.items():
        if kind == "AVX2" and not has_vnni():
            continue  # this machine is one
        command = [sys.executable, "-m", "benchmarks.int8", *sys.argv[1:], "--child"]
        print(f"{kind} ...", file=sys.stderr, flush=True)
        done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True)
        kinds[kind if environment or has_vnni() else "AVX2"] = json.loads(done.stdout.splitlines()[-1])
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(),
        "command": "python -m benchmarks.int8 --data DATA --models MODELS",
        "kinds": kinds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with text/ and retrieval/")
    parser.add_argument("--models", type=Path, help="a folder of further checkpoints")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each dtype")
    parser.add_argument("--count", type=int, default=100, help="sentences a corpus; a quarter as many passages")
    parser.add_argument("--out", type=Path, default=RECORD, help="where the record goes")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    add_model(parser)
    options = parser.parse_args()
    fill_model(options)
    if not options.child:
        record = run()
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{options.out}; the table: make docs FIX=1")
        return
    models: dict[str, str | None] = {"all-MiniLM-L6-v2": str(options.model)}
    for folder in sorted(options.models.iterdir()) if options.models else ():
        if (folder / "config.json").exists() and "minilm" not in folder.name:
            models[folder.name] = str(folder)
    corpora = texts_of(options.data, options.count)
    found = {}
    for name, place in {**models, **dict.fromkeys(BUNDLED)}.items():
        found[name] = measure(name, place, corpora, options.rounds)
        print(name, json.dumps(found[name]), file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
