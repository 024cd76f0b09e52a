"""The paper's headline: the most similar pair among 10,000 sentences, from strings to the answer.

    python -m benchmarks.pairs [--device cpu|cuda] [--count 10000] [--data FOLDER | --texts FILE] [--out FILE.json]

The Sentence-BERT paper (arXiv 1908.10084) gives about 5 s for SBERT and 65 hours for BERT over all pairs, on a V100.
The cross-encoder here has the same encoder and an untrained head, as only its time matters; it scores a sample of the
pairs, and the time of all is extrapolated.
"""

import argparse
import json
import random
import time
import warnings
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.corpora import FILES, corpora
from benchmarks.models import add_model, fill_model
from munjang import BiEncoder, CrossEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor, take_turns

PAPER = {"SBERT, V100, s": 5.0, "BERT over all pairs, V100, hours": 65.0}
BLOCK = 2048  # rows of the similarity matrix at a time: 10,000 × 2,048 floats are 80 MB


def most_similar(vectors_ND: Tensor, block: int = BLOCK) -> tuple[float, int, int]:
    """The largest cosine of two different rows and where they are, exact, without the whole matrix.

    N vectors, D width.
    """
    unit_ND = torch.nn.functional.normalize(vectors_ND.float(), dim=1)
    best_score, best_row, best_column = -2.0, 0, 0
    for start in range(0, len(unit_ND), block):
        scores = unit_ND[start : start + block] @ unit_ND[start:].T  # what is left of it was seen from the other side
        scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).tril(), -2.0)  # itself, and pairs seen before
        score, place = scores.flatten().max(0)
        if float(score) > best_score:
            row, column = divmod(int(place), scores.shape[1])
            best_score, best_row, best_column = float(score), start + row, start + column
    return best_score, best_row, best_column


def sentences(options: argparse.Namespace) -> list[str]:
    """Distinct ones: a pair of equal sentences would be no answer."""
    if options.texts:
        source = read_texts(options.texts)
    elif options.data:
        source = read_texts(options.data / FILES["english"])
    else:
        source = iter(corpora(2 * options.count)["English short"])
    found = list(islice(dict.fromkeys(source), options.count))
    if len(found) < options.count:
        raise SystemExit(f"There are only {len(found)} different sentences; give a smaller --count")
    return found


def run(options: argparse.Namespace) -> dict[str, Any]:
    """The bi-encoder's answer and time, the cross-encoder's time."""
    texts = sentences(options)
    model = BiEncoder.load(options.model, options.device, options.dtype)
    answer: list[tuple[float, int, int]] = []
    seconds: dict[str, float] = {}

    def find() -> None:
        start = time.perf_counter()
        vectors = model.encode(texts, output="torch", progress=False)
        if vectors.is_cuda:
            torch.cuda.synchronize()
        seconds["encode"] = time.perf_counter() - start
        answer[:] = [most_similar(vectors)]

    if options.rounds == 1:  # a long run on a slow machine: warmed by a part only
        model.encode(texts[:200], progress=False)
        start = time.perf_counter()
        find()
        total = time.perf_counter() - start
    else:
        total = take_turns({"find": find}, options.rounds)["find"].median
    (score, first, second) = answer[0]
    num_pairs = len(texts) * (len(texts) - 1) // 2
    crossing = cross_seconds(options, texts) * num_pairs
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor(model.device),
        "device": str(model.device),
        "dtype": str(model.dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "command": "python -m benchmarks.pairs",
        "model": options.name,
        "sentences": len(texts),
        "pairs": num_pairs,
        "seconds": round(total, 3),
        "seconds_encoding": round(seconds["encode"], 3),
        "cosine": round(score, 5),
        "pair": [texts[first], texts[second]],
        "cross_encoder_hours_extrapolated": round(crossing / 3600, 3),
        "cross_encoder_sample": options.sample,
        "times_cross_encoder": round(crossing / total),
        "paper": PAPER,
    }


def cross_seconds(options: argparse.Namespace, texts: list[str]) -> float:
    """Seconds that a cross-encoder takes for one pair, by a sample of them."""
    scorer = CrossEncoder.create(options.model, device=options.device, dtype=options.dtype)
    random_ = random.Random(0)
    pairs = [random_.sample(texts, 2) for _ in range(options.sample)]
    timing = take_turns({"score": lambda: scorer.predict(pairs, progress=False)}, options.rounds)["score"]
    return timing.median / len(pairs)


def main() -> None:
    """Parse, measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add_model(parser)
    parser.add_argument("--device", help="cpu or cuda; default: the best there is")
    parser.add_argument("--dtype", help="type to compute in; default: by device")
    parser.add_argument("--texts", type=Path, help="file with one sentence a line")
    parser.add_argument("--data", type=Path, help="folder with text/; default: made-up sentences")
    parser.add_argument("--count", type=int, default=10_000, help="sentences")
    parser.add_argument("--sample", type=int, default=1000, help="pairs that the cross-encoder scores")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="where to write the record as JSON")
    options = parser.parse_args()
    fill_model(options)
    warnings.simplefilter("ignore")
    record = run(options)
    print(
        f"{record['sentences']:,} sentences on {record['machine']} ({record['dtype']}): {record['seconds']:.2f} s, "
        f"{record['seconds_encoding']:.2f} s of it encoding; cosine {record['cosine']}: {record['pair']}\n"
        f"a cross-encoder over {record['pairs']:,} pairs: {record['cross_encoder_hours_extrapolated']:.2f} hours, "
        f"extrapolated from {record['cross_encoder_sample']}: {record['times_cross_encoder']:,} times as long\n"
        f"the paper, on a V100: {PAPER['SBERT, V100, s']:.0f} s and {PAPER['BERT over all pairs, V100, hours']:.0f} h"
    )
    if options.out:
        options.out.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
