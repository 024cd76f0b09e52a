"""The last round several times side by side, on from trained weights, and what lies between them.

    python -u -m recipes.ko_en_small.soup stage WORK E5 MPNET KOREAN DATA           on from the bundled models
    python -u -m recipes.ko_en_small.soup train WORK [--steps 1100] [--judges 3]    GPU, 20 minutes
    python -u -m recipes.ko_en_small.soup search WORK [--steps 2000]                the rounds of search.py instead
    python -u -m recipes.ko_en_small.soup look WORK "E1=0.25;E2=0.25" "E1=1,1,0.5,0.5;base=0,0,0.1,0.1"
    python -u -m recipes.ko_en_small.soup mix WORK "E1=0.25;E2=0.25" OUT

WORK holds folders: start (to go on from), kept (where questions and passages stay), base (the pruned vocabulary before
any training), mpnet, korean (a plain encoder), reranker, data, and silver with asked.tsv, gathered.tsv and, where
more.py has put their texts beside the data, bills.tsv and wiki.tsv; `stage` puts them there, as links where it can.
`train` adds E1, E2, ..., `search` F1, F2, ...; what is there already is not made again. For a machine that takes and
gives little at a time: `tar chf - WORK | split -b 50M`, and the differences of the trainings to start are in WORK/ret
(`recipes.weights.added` puts them together again). `look` prints Spearman x 100 of STSb and KorSTS dev and of crossed
dev, nDCG@10 and recall@10 of KorQuAD and Cranfield; with --tests, the test sets too. A mix goes from start towards each
model by one share, or by one for the words and one for each part of the layers.

Trainings wait for the host, so two take little longer than one (CUDA's MPS: nvidia-cuda-mps-control -d).
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from munjang import BiEncoder, evaluate
from munjang.checkpoint.bundled import FOLDER
from munjang.errors import InputError
from recipes.ko_en_small.asked import asked
from recipes.ko_en_small.bills import bills
from recipes.ko_en_small.data import crossed, file
from recipes.ko_en_small.gathered import gathered
from recipes.ko_en_small.settings import KEPT, UNUSED
from recipes.ko_en_small.wiki import wiki
from recipes.ko_en_small.words import base
from recipes.weights import Way, blend, difference, mixed

Jobs: TypeAlias = dict[Path, list[str | Path]]  # what is made, and the stage that makes it

START = "ko-en-small"
WITHOUT = ("--without", *UNUSED)
# Of Korean words alone, as English similarity and Korean search fall where everything learns; and of everything.
# What is held weighs the more, the more may move
RUNS: dict[str, list[str]] = {
    "E1": [*WITHOUT, "--words", "--held", "100", "--set", "learning_rate=3e-4", "seed=21"],
    "E2": [*WITHOUT, "--words", "--held", "300", "--set", "learning_rate=1e-3", "seed=22"],
    "E3": [*WITHOUT, "--held", "100", "--set", "learning_rate=2e-5", "layer_decay=1.2", "seed=23"],
    "E4": [*WITHOUT, "--held", "300", "--set", "learning_rate=4e-5", "layer_decay=1.05", "seed=24"],
}
# Vectors alone, those of sentences and those that find passages; and with the re-ranker's word
SEARCHES: dict[str, list[str]] = {
    "F1": ["--without", "ranked", "apart", "--set", "learning_rate=5e-5", "seed=31"],
    "F2": ["--without", "ranked", "apart", "--set", "learning_rate=2e-4", "seed=32"],
    "F3": ["--without", "apart", "--set", "learning_rate=5e-5", "seed=33"],
    "F4": ["--of-passages", "3", "--without", "ranked", "apart", "--set", "learning_rate=1e-4", "seed=34"],
}
MEMORY = "batch_tokens=131072"  # four beside each other with twice as many fill 140 GB, and one of them waits
TO_SEARCH = ("start", "kept", "reranker", "silver", "data")  # in the order in which `search` takes them
STAGED = ("start", "kept", "mpnet", "korean", "reranker", "data", "silver")
TAIL = 2000  # characters of a log that says what went wrong


def stage(work: Path, e5: Path, mpnet: Path, korean: Path, data: Path) -> None:
    """What `train` needs, on from the bundled models."""
    (work / "silver").mkdir(parents=True, exist_ok=True)
    base(e5, data, work / "base")
    BiEncoder.load(START, "cpu", "float32").save(work / "start")
    blend(work / "base", work / "start", work / "kept", share=KEPT)
    asked(data, work / "silver/asked.tsv")
    gathered(data, work / "silver/gathered.tsv")
    for name, make in (("bills", bills), ("wiki", wiki)):
        if file(data, f"text/ko-{name}").exists():
            make(data, work / f"silver/{name}.tsv")
    links = {"mpnet": mpnet, "korean": korean, "data": data, "reranker": FOLDER / "ko-en-reranker"}
    for name, target in links.items():
        (work / name).unlink(missing_ok=True)
        (work / name).symlink_to(target.resolve())


def train(work: Path, steps: int, judges: int) -> None:
    """Judges and tutor side by side, then pairs, then the trainings side by side; what is there is not made again."""
    data, silver = work / "data", work / "silver"
    check(work, STAGED)
    judged = [work / f"judge{seed}" for seed in range(1, judges + 1)]
    jobs: Jobs = {work / "tutor": ["tutor", work / "mpnet", data, work / "tutor"]}
    for seed, each in enumerate(judged, 1):
        jobs[each] = ["judge", work / "korean", data, each, "--seed", str(seed)]
    side_by_side(work, jobs)
    pairs = silver / "silver-ko.tsv"
    side_by_side(work, {pairs: ["korean", work / "start", *judged, data, pairs]})
    rounds(work, "last", ("start", "kept", "tutor", "reranker", "silver", "data"), RUNS, steps)


def search(work: Path, steps: int) -> None:
    """The rounds that learn to search, side by side."""
    check(work, TO_SEARCH)
    rounds(work, "search", TO_SEARCH, SEARCHES, steps)


def check(work: Path, names: Sequence[str]) -> None:
    """Refuse a folder in which something is missing before anything runs."""
    missing = [name for name in names if not (work / name).exists()]
    if missing:
        raise InputError(f"{work} is without {', '.join(missing)}; `stage` puts them there.")


def rounds(work: Path, name: str, given: Sequence[str], runs: dict[str, list[str]], steps: int) -> None:
    """One stage in several ways, and what each of them has changed; the last of its options are settings."""
    changes = [f"max_steps={steps}", "save_every=250", MEMORY]
    folders = [work / each for each in given]
    side_by_side(work, {work / each: [name, *folders, work / each, *own, *changes] for each, own in runs.items()})
    for each in runs:
        difference(work / "start", work / each, work / "ret")


def side_by_side(work: Path, jobs: Jobs) -> None:
    """Stages of recipes.ko_en_small.run by what they make, each in a process of its own, its words in WORK/NAME.log."""
    running = []
    for made, arguments in jobs.items():
        if made.exists():
            print(f"{made} is there", flush=True)
            continue
        log = work / f"{made.name}.log"
        command = [sys.executable, "-u", "-m", "recipes.ko_en_small.run", *map(str, arguments)]
        with log.open("wb") as output:
            running.append((made, log, subprocess.Popen(command, stdout=output, stderr=output)))
    failed = [(made, log) for made, log, process in running if process.wait()]
    for made, log in failed:
        print(log.read_text(errors="replace")[-TAIL:], f"{made} was not made: {log}", sep="\n", flush=True)
    if failed:
        raise InputError(f"{len(failed)} of {len(running)} stages failed; what they said is above.")
    for made, *_ in running:
        print(f"{made} is made", flush=True)


def ways(work: Path, text: str) -> list[Way]:
    """A mix as it is written: `E1=0.5;base=0,0,0.1,0.1`; an empty one is the start itself."""
    found: list[Way] = []
    for part in filter(None, text.split(";")):
        name, _, numbers = part.partition("=")
        try:
            found.append((work / name, [float(number) for number in numbers.split(",")]))
        except ValueError:
            raise InputError(f"A share in {part!r} is no number; write NAME=0.5 or NAME=1,1,0.7,0.65.") from None
    return found


def mix(work: Path, text: str, out: Path) -> None:
    """The folder of one mix."""
    mixed(work / "start", ways(work, text), out)


def look(work: Path, texts: list[str], has_tests: bool, dtype: str | None) -> None:
    """A line of scores for each mix."""
    data = work / "data"
    names = ["stsb-dev", "korsts-dev", *(["stsb-test", "korsts-test"] if has_tests else [])]
    for text in texts:
        with TemporaryDirectory() as folder:
            mix(work, text, Path(folder) / "mix")
            encoder = BiEncoder.load(Path(folder) / "mix", dtype=dtype)
        scores = {name: evaluate(encoder, file(data, f"sts/{name}"), kind="sts").score for name in names}
        scores["crossed"] = evaluate(encoder, crossed(data, "dev"), kind="sts").score
        for name in ("korquad", "cranfield"):
            metrics = evaluate(encoder, data / "retrieval" / name, kind="retrieval").metrics
            scores |= {f"{name} {metric}": metrics[metric] for metric in ("ndcg@10", "recall@10")}
        print(text or "start", {name: round(100 * score, 2) for name, score in scores.items()}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["stage", "train", "search", "look", "mix"])
    parser.add_argument("work", type=Path)
    parser.add_argument("rest", nargs="*", help="mixes, the folder of a mix, or what is staged")
    parser.add_argument("--steps", type=int, default=1100)
    parser.add_argument("--judges", type=int, default=3)
    parser.add_argument("--tests", action="store_true", help="test sets too: not to choose by")
    parser.add_argument("--dtype", default="float32")
    options = parser.parse_args()
    if options.action == "stage" and len(options.rest) == 4:
        stage(options.work, *map(Path, options.rest))
    elif options.action == "train":
        train(options.work, options.steps, options.judges)
    elif options.action == "search":
        search(options.work, options.steps)
    elif options.action == "look":
        look(options.work, options.rest, options.tests, options.dtype)
    elif options.action == "mix" and len(options.rest) == 2:
        mix(options.work, options.rest[0], Path(options.rest[1]))
    else:
        parser.error("mix takes a mix and the folder to write, stage takes E5 MPNET KOREAN DATA")


if __name__ == "__main__":
    main()
