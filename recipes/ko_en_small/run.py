"""Make ko-en-small: from multilingual-e5-small and the data folder to a small Korean-English encoder.

    python -u -m recipes.ko_en_small.more REPOSITORIES DATA                       once: more sentences beside the data
    python -u -m recipes.ko_en_small.run all E5 MPNET KOREAN RERANKER DATA WORK    every stage that is not done yet; GPU
    python -u -m recipes.ko_en_small.run evaluate MODEL DATA OUT.json [--device cpu] [--dtype int8]

MPNET is all-mpnet-base-v2, the English teacher; KOREAN a plain Korean encoder; RERANKER a re-ranker that was trained
with the rounds before the last (recipes/ko_en_reranker), as the bundled ko-en-reranker was. The model is WORK/model,
its scores WORK/scores.json; recipes.ship puts it into the package. docs/results.md says what each stage gave.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from munjang import BiEncoder, Dataset, train
from munjang.data.examples import Examples
from munjang.training.run import is_begun
from recipes.ko_en_small.asked import asked
from recipes.ko_en_small.bills import bills
from recipes.ko_en_small.both import Both, neighbours, rescored, softened
from recipes.ko_en_small.data import Sets, file, joined, read
from recipes.ko_en_small.gathered import gathered
from recipes.ko_en_small.judges import judge, korean_silver, tutor
from recipes.ko_en_small.last import OF_SEARCH, last
from recipes.ko_en_small.measure import measure
from recipes.ko_en_small.merge import merge
from recipes.ko_en_small.search import search
from recipes.ko_en_small.settings import KEPT, ROUND, UNUSED, check_parts, neighbourhoods
from recipes.ko_en_small.silver import scored_silver, scorer, silver
from recipes.ko_en_small.wiki import wiki
from recipes.ko_en_small.words import base
from recipes.weights import blend, mixed

Stage = tuple[Path, Callable[[], None]]  # what it makes, and how
# The third round goes on from the first one, with what teaches similarity
THIRD = {"learning_rate": 6e-5, "seed": 11}
WITHOUT = ["questions", "passages", "korean"]
FIRST_WEIGHT = (1.0, 1.0, 0.7, 0.65)  # of the trained weights: words, and thirds of the layers (docs/results.md)
ALONE = {"max_steps": 2200, "learning_rate": 8e-5, "seed": 11}  # the last round without anything of search
AGAIN = {"max_steps": 1000, "seed": 6, "batch_tokens": 262_144}
GENTLE = {"max_steps": 1200, "learning_rate": 5e-5, "dropout": 0.0, "batch_tokens": 262_144}
JUDGES = (1, 2, 3)  # seeds
# After that: four more of them, and their mean, away from the base where search is not lost by it
FOUR: dict[str, dict[str, Any]] = {
    f"four{seed - 20}": {"max_steps": 1200, "learning_rate": rate, "layer_decay": decay, "seed": seed, **more}
    for seed, rate, decay, more in (
        (21, 2e-5, 1.2, {}),
        (22, 2e-5, 1.2, {"dropout": 0.0}),
        (23, 5e-5, 1.05, {}),
        (24, 5e-5, 1.05, {"dropout": 0.0}),
    )
}
OF_FOUR, OF_BASE = (1.0, 0.3, 0.3, 0.3), (0.0, -0.05, -0.15, -0.1)
# Two of Korean words alone, each with the weight of what is held
OF_WORDS: dict[str, tuple[float, dict[str, Any]]] = {
    "words1": (100.0, {"max_steps": 1500, "learning_rate": 3e-4, "seed": 21}),
    "words2": (300.0, {"max_steps": 1500, "learning_rate": 1e-3, "seed": 22}),
}
HALF = 0.5  # of the way to their mean


def datasets(sets: Sets, teacher: Any, start: BiEncoder, silver: list[Examples]) -> dict[str, list[Dataset]]:
    """Return the datasets of a round by name; one batch of each makes up an update.

    The English teacher says how close English sentences and their translations are; the start itself, which has seen
    much Korean and many passages, says it of those, so that what it knows is not lost.
    """

    def kl(name: str, parts: list[Examples], size: int, by: Any, **options: Any) -> Dataset:
        return neighbourhoods(joined(name, parts), size, by, **options)

    english = [each for each in sets.questions if each.name != "Korean questions"]
    low = {"teacher_temperature": 0.02}  # the start's cosines lie between 0.7 and 1
    return {
        "sts": [
            Dataset(data=sets.sts[0], objective="cosent", batch_size=192),
            Dataset(data=sets.sts[1], objective="cosent", batch_size=96),
        ],
        "silver": [Dataset(data=each, objective="cosent", batch_size=192) for each in silver],
        "triplets": [Dataset(data=joined("NLI triplets", sets.triplets), objective="in_batch", batch_size=128)],
        "questions": [Dataset(data=joined("questions", sets.questions), objective="in_batch", batch_size=96)],
        "passages": [
            Dataset(data=each, objective="in_batch", batch_size=96)
            for each in (joined("passages", sets.documents), *sets.alone)
        ],
        "translations": [kl(each.name, [each], 192, teacher, target="first") for each in sets.translations],
        "neighbours": [kl("English", sets.english, 192, teacher), kl("answers", english, 64, teacher)],
        "korean": [kl("Korean", sets.korean, 128, start, **low), kl("found", sets.passages, 96, start, **low)],
    }


def contrast(
    model: Path,
    teacher: Path,
    silver: Path,
    data: Path,
    out: Path,
    changes: dict[str, Any],
    without: list[str],
    beside: Path | None = None,
    begin: Path | None = None,
) -> None:
    """Train on all data at once, a batch of each kind an update.

    `beside`, an earlier round's model, teaches too; `begin` has the weights to go on from instead of the model's.
    """
    chosen = prepared(model, teacher, silver, data, without, beside)
    encoder = BiEncoder.load(begin or model, dtype="float32")
    # stopped, it goes on
    config = replace(ROUND, output=str(out), accumulate=len(chosen), resume=is_begun(out), **changes)
    train(encoder, chosen, config=config)


def prepared(
    model: Path, teacher: Path, silver: Path, data: Path, without: list[str], beside: Path | None
) -> list[Dataset]:
    """Return the datasets of a round."""
    sets = read(data, silver)
    print(sets, flush=True)
    judged = scored_silver(silver)
    pairs, start, english = judged.pairs, BiEncoder.load(model), BiEncoder.load(teacher)
    both = None if beside is None else Both(english, BiEncoder.load(beside))
    if both is not None:
        pairs = [*rescored(both, judged.pairs, judged.english), neighbours(both, data)]
        sets = replace(sets, sts=[softened(both, sets.sts[0], data), sets.sts[1]])
    parts = datasets(sets, both or english, start, pairs)
    check_parts(without, parts)
    return [each for name, part in parts.items() if name not in without for each in part]


def everything(e5: Path, mpnet: Path, korean: Path, reranker: Path, data: Path, work: Path) -> None:
    """Run all stages in order; existing results are not made again."""
    start, made, rounds = work / "base", work / "silver", [work / f"round{number}" for number in (1, 2, 3)]
    made.mkdir(parents=True, exist_ok=True)
    taught = (start, mpnet, made, data)
    judges, teacher, mean = [work / f"judge{seed}" for seed in JUDGES], work / "tutor", work / "mean"

    def ended(
        begin: Path, kept: Path, out: Path, changes: dict[str, Any], without: Sequence[str] = (), **more: Any
    ) -> Stage:
        paths = (begin, kept, teacher, reranker, made, data, out)
        return out, lambda: last(*paths, changes=changes, without=list(without), **more)

    def blended(out: Path, *folders: Path, weight: float | Sequence[float]) -> Stage:
        return out, lambda: blend(start, *folders, out, weight=weight)

    half, most = work / "mean0.5", work / "mean0.7"
    with_search, alone, held = [work / "last1", work / "last2"], work / "last3", work / "held"
    first, kept, near, spoken, found = (work / name for name in ("first", "kept", "near", "spoken", "found"))
    texts = [each for each in (("bills", bills), ("wiki", wiki)) if file(data, f"text/ko-{each[0]}").exists()]
    stages: list[Stage] = [
        (start, lambda: base(e5, data, start)),
        (made / "asked.tsv", lambda: asked(data, made / "asked.tsv")),
        (made / "gathered.tsv", lambda: gathered(data, made / "gathered.tsv")),
        *((made / f"{name}.tsv", partial(make, data, made / f"{name}.tsv")) for name, make in texts),
        (work / "scorer", lambda: scorer(mpnet, data, work / "scorer")),
        (made / "silver-en-ko.tsv", lambda: silver(mpnet, work / "scorer", data, made)),
        (rounds[0], lambda: contrast(*taught, rounds[0], {}, [])),
        blended(work / "beside", rounds[0], weight=0.7),
        (rounds[1], lambda: contrast(*taught, rounds[1], {"learning_rate": 1e-4}, [], work / "beside")),
        (rounds[2], lambda: contrast(*taught, rounds[2], THIRD, WITHOUT, work / "beside", rounds[0])),
        *(blended(out, *rounds, weight=weight) for out, weight in ((half, 0.5), (most, 0.7), (mean, 1.0))),
        *((out, partial(judge, korean, data, out, seed)) for out, seed in zip(judges, JUDGES, strict=True)),
        (teacher, lambda: tutor(mpnet, data, teacher)),
        (made / "silver-ko.tsv", lambda: korean_silver(mean, *judges, data, made / "silver-ko.tsv")),
        ended(most, half, with_search[0], GENTLE),
        ended(with_search[0], half, with_search[1], GENTLE),
        ended(mean, half, alone, ALONE, OF_SEARCH),
        blended(held, with_search[1], alone, weight=0.5),
        blended(work / "both", with_search[1], alone, weight=0.8),
        ended(work / "both", held, work / "last4", AGAIN),
        blended(first, work / "last4", weight=FIRST_WEIGHT),
        blended(kept, first, weight=KEPT),
        *(ended(first, kept, work / name, changes, UNUSED) for name, changes in FOUR.items()),
        (near, lambda: mixed(first, [*((work / name, divided(OF_FOUR)) for name in FOUR), (start, OF_BASE)], near)),
        *(
            ended(near, kept, work / name, changes, UNUSED, held=weight, is_of_words=True)
            for name, (weight, changes) in OF_WORDS.items()
        ),
        (spoken, lambda: blend(near, *(work / name for name in OF_WORDS), spoken, weight=HALF)),
        (found, lambda: search(spoken, kept, reranker, made, data, found)),
        (work / "model", lambda: merge(spoken, found, first, made, data, work / "model")),
        (work / "scores.json", lambda: measure(work / "model", data, work / "scores.json", None)),
    ]
    for path, make in stages:
        if path.exists():
            print(f"{path} exists", flush=True)
        else:
            print(f"{path} ...", flush=True)
            make()


def divided(weights: Sequence[float]) -> list[float]:
    """Return the weights of each of the four."""
    return [weight / len(FOUR) for weight in weights]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["all", "evaluate"])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--device", help="of evaluate")
    parser.add_argument("--dtype", help="of evaluate (default: as the model is loaded)")
    options = parser.parse_args()
    if options.command == "all":
        everything(*options.paths)
    else:
        measure(*options.paths, device=options.device, dtype=options.dtype)


if __name__ == "__main__":
    main()
