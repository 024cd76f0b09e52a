"""Make a re-ranker from data in four stages: collect pairs, mine lists, train a teacher, train the re-ranker.

    python -m recipes.models DATA WORK [--stages pairs lists teacher reranker] [--start ko-en-small]

DATA is the data folder (docs/recipe.md says what is in it). WORK keeps what each stage made, so that a stopped run goes
on with the next stage: WORK/pairs, lists, scores, and WORK/reranker, the model folder.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from munjang import BiEncoder, CrossEncoder
from recipes.models.lists import mine
from recipes.models.measure import measure_all
from recipes.models.pairs import collect
from recipes.models.reranker import CONFIG, learn, teach


def _pairs(options: argparse.Namespace) -> None:
    collect(options.data, options.work)


def _lists(options: argparse.Namespace) -> None:
    mine(_start(options), options.work)


def _teacher(options: argparse.Namespace) -> None:
    teach(_start(options, "float32"), options.work, options.teacher_updates, options.teacher_rate, options.seed)
    _measure(options, "teacher")


def _reranker(options: argparse.Namespace) -> None:
    out = options.work / options.name
    config = replace(CONFIG, max_steps=options.updates, learning_rate=options.rate, seed=options.seed)
    learn(_start(options, "float32"), _start(options), options.work, options.share, config, out)
    _measure(options, options.name)


def _final(options: argparse.Namespace) -> None:
    """Measure on the sets that nothing was chosen on, once, for the model that is to be shipped."""
    folders = [options.data / "retrieval" / name for name in FINAL_SETS]
    measure_all(_named(options), _start(options), folders, options.work / f"{options.name}-final.json")


FINAL_SETS = ("korquad", "cranfield", "cacm", "pubmedqa", "korean-pages")
STAGES: dict[str, Callable[[argparse.Namespace], None]] = {
    "pairs": _pairs,
    "lists": _lists,
    "teacher": _teacher,
    "reranker": _reranker,
    "final": _final,
}


def _start(options: argparse.Namespace, dtype: str | None = None) -> BiEncoder:
    return BiEncoder.load(options.start, options.device, dtype)


def _measure(options: argparse.Namespace, name: str) -> None:
    """Measure on the dev sets alone."""
    model = CrossEncoder.load(options.work / name, options.device)
    measure_all(model, _start(options), _dev_sets(options), options.work / f"{name}-dev.json")


def _dev_sets(options: argparse.Namespace) -> list[Path]:
    return sorted(each for each in (options.work / "dev").iterdir() if each.is_dir())


def _named(options: argparse.Namespace) -> CrossEncoder:
    folder = options.work / options.name
    return CrossEncoder.load(folder if folder.is_dir() else options.name, options.device)


def _hashes(folder: Path) -> dict[str, str]:
    """Return the sha256 of the tables that a run began with."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("pairs/*"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES)[:4])
    parser.add_argument("--start", default="ko-en-small", help="the encoder")
    parser.add_argument("--device", help="default: the best there is")
    parser.add_argument("--teacher-updates", type=int, default=2500)
    parser.add_argument("--teacher-rate", type=float, default=1e-4)
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=2e-4)
    parser.add_argument("--share", type=float, default=0.15, help="of the teacher beside the encoder, in English")
    parser.add_argument("--name", default="reranker")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    seconds = {}
    for name in options.stages:
        started = time.monotonic()
        STAGES[name](options)
        seconds[name] = round(time.monotonic() - started)
        print(f"{name}: {seconds[name]} s", flush=True)
        record = {
            "options": {key: str(value) for key, value in vars(options).items()},
            "seconds": seconds,
            "pairs": _hashes(options.work),
        }
        path = options.work / f"run-{'-'.join(options.stages)}.json"
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
