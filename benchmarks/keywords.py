"""Keywords of documents, ours beside KeyBERT's with the same model, in turns; and whether they are the same.

    python -m benchmarks.keywords --data FOLDER [--count 1000] [--rounds 3] [--device cuda] [--dtype int8] [--out FILE]

KeyBERT runs on sentence-transformers, its default backend. `cpu` seconds beside the clock's say what a busy machine
took away. FOLDER has text/ and retrieval/ (see benchmarks.corpora). Needs keybert: pip install 'munjang[keybert]'.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from benchmarks.corpora import FILES
from benchmarks.models import add_model, fill_model
from munjang import BiEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.tasks.keywords.extract import Keyword, KeywordConfig, keywords

# name: our settings, KeyBERT's, and the share of the documents (max-sum takes KeyBERT a minute for a few hundred)
SETTINGS: dict[str, tuple[KeywordConfig, dict[str, Any], float]] = {
    "words": (KeywordConfig(), {}, 1),
    "1-2 words, mmr": (
        KeywordConfig(ngrams=(1, 2), pick="mmr"),
        {"keyphrase_ngram_range": (1, 2), "use_mmr": True},
        1,
    ),
    "words, max-sum": (KeywordConfig(pick="max_sum"), {"use_maxsum": True}, 0.2),
}


def timed(action: Callable[[], Any], is_gpu: bool) -> tuple[Any, float, float]:
    """Return the result of some work, and its seconds by the clock and of the CPU."""
    start, cpu = time.perf_counter(), time.process_time()
    found = action()
    if is_gpu:
        torch.cuda.synchronize()
    return found, time.perf_counter() - start, time.process_time() - cpu


def agreement(ours: list[list[Keyword]], theirs: list[list[tuple[str, float]]]) -> dict[str, float]:
    """The share of documents with the same keywords, and the largest difference of a keyword that both have.

    By max-sum KeyBERT gives none where a document has fewer candidates than keywords asked for: counted apart.
    """
    rows = [(mine, dict(given)) for mine, given in zip(ours, theirs, strict=True) if given or not mine]
    same = sum({each.text for each in mine} == set(scores) for mine, scores in rows)
    gaps = [abs(each.score - scores[each.text]) for mine, scores in rows for each in mine if each.text in scores]
    return {
        "same_keywords": same / len(rows),
        "largest_difference": max(gaps, default=0.0),
        "only_ours": len(ours) - len(rows),
    }


def compare(texts: list[str], name: str, model: BiEncoder, peer: Any, rounds: int) -> dict[str, Any]:
    """One setting, in turns."""
    config, theirs, share = SETTINGS[name]
    texts = texts[: max(2, round(len(texts) * share))]
    sides = {"munjang": lambda: keywords(texts, model, config, progress=False)}
    sides["keybert"] = lambda: peer.extract_keywords(texts, **theirs)
    clock: dict[str, list[float]] = {side: [] for side in sides}
    cpu: dict[str, list[float]] = {side: [] for side in sides}
    found = {}
    for _ in range(rounds):
        for side, action in sides.items():
            found[side], seconds, used = timed(action, model.device.type == "cuda")
            clock[side].append(seconds)
            cpu[side].append(used)
    record = {
        "documents": len(texts),
        "times_as_fast": statistics.median(clock["keybert"]) / statistics.median(clock["munjang"]),
        "times_as_fast_cpu": statistics.median(cpu["keybert"]) / statistics.median(cpu["munjang"]),
        **agreement(found["munjang"], found["keybert"]),
        "seconds": clock,
        "cpu_seconds": cpu,
    }
    print(name, {key: value for key, value in record.items() if "seconds" not in key}, flush=True)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model(parser)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", choices=sorted(FILES), default="english")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--only", nargs="*", default=sorted(SETTINGS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    fill_model(options)
    from keybert import KeyBERT
    from sentence_transformers import SentenceTransformer

    texts = list(
        islice((text for text in read_texts(options.data / FILES[options.corpus]) if text.strip()), options.count)
    )
    if options.threads:
        torch.set_num_threads(options.threads)
    model = BiEncoder.load(options.model, device=options.device, dtype=options.dtype, threads=options.threads)
    peer = KeyBERT(SentenceTransformer(str(options.model), device=options.device))
    keywords(texts[:20], model)
    peer.extract_keywords(texts[:20])
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": Path(options.model).name,
        "machine": processor(model.device),
        "threads": options.threads,
        "dtype": str(model.dtype).removeprefix("torch."),
        "corpus": FILES[options.corpus],
        "rounds": options.rounds,
        "versions": {name: version(name) for name in ("keybert", "sentence-transformers", "torch")},
        "settings": {name: compare(texts, name, model, peer, options.rounds) for name in options.only},
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
