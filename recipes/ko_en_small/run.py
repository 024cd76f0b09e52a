"""ko-en-small, stage by stage: from multilingual-e5-small and the data folder to a small Korean-English encoder.

    python -u -m recipes.ko_en_small.run all E5 MPNET KOREAN RERANKER DATA WORK    every stage that is not done yet

    python -u -m recipes.ko_en_small.run base E5 DATA BASE                   the vocabulary pruned to Korean and English
    python -u -m recipes.ko_en_small.run scorer MPNET DATA SCORER            GPU: an English cross-encoder learns STS
    python -u -m recipes.ko_en_small.run silver MPNET SCORER DATA SILVER     GPU: it scores pairs and their translations
    python -u -m recipes.ko_en_small.run asked DATA SILVER/asked.tsv         questions made from sentences of documents
    python -u -m recipes.ko_en_small.run gathered DATA SILVER/gathered.tsv   and of other sentences
    python -u -m recipes.ko_en_small.run bills DATA SILVER/bills.tsv         and of bills, if more.py has put them there
    python -u -m recipes.ko_en_small.run wiki DATA SILVER/wiki.tsv           and of an encyclopaedia
    python -u -m recipes.ko_en_small.run contrast BASE MPNET SILVER DATA OUT    GPU: everything at once
    python -u -m recipes.ko_en_small.run contrast BASE MPNET SILVER DATA OUT2 --beside OUT    GPU: once more, with both
    python -u -m recipes.ko_en_small.run contrast BASE MPNET SILVER DATA OUT3 --beside OUT --begin OUT
    python -u -m recipes.ko_en_small.run judge KOREAN DATA JUDGE [--seed 2]    GPU: a Korean cross-encoder learns STS
    python -u -m recipes.ko_en_small.run tutor MPNET DATA TUTOR               GPU: the English teacher learns STS
    python -u -m recipes.ko_en_small.run korean OUT JUDGE [JUDGE2 ...] DATA SILVER/silver-ko.tsv    GPU: Korean scored
    python -u -m recipes.ko_en_small.run last BEGIN KEPT TUTOR RERANKER SILVER DATA OUT4    GPU: Korean to English
    python -u -m recipes.ko_en_small.run search BEGIN KEPT RERANKER SILVER DATA OUT5    GPU: search, the rest as it was
    python -u -m recipes.ko_en_small.run merge BEGIN OUT5 ENGLISH SILVER DATA MODEL    one from two; words of ENGLISH
    python -u -m recipes.ko_en_small.run chosen BASE OUT [OUT2 ...] SILVER DATA    what shares give on sets kept back
    python -u -m recipes.ko_en_small.run blend BASE OUT [OUT2 ...] MODEL --share 0.5    weights in between
    python -u -m recipes.ko_en_small.run blend BASE OUT MODEL --share 1 1 0.7 0.65    words, thirds of the layers
    python -u -m recipes.ko_en_small.run widen E5 MODEL OUT                  characters that `base` once left out
    python -u -m recipes.ko_en_small.run evaluate MODEL DATA OUT.json [--device cpu]
    python -u -m recipes.ko_en_small.run smaller MODEL DATA                  fewer components, and fewer bits of each
    python -u -m recipes.ko_en_small.run covered E5 MODEL DATA               the pruned vocabulary on unseen text
    python -u -m recipes.ko_en_small.run teachers MPNET OUT DATA             two teachers alone and together
    python -u -m recipes.ko_en_small.run pack MODEL PARTS --parts 2          parts that fit the limits of a transfer
    python -u -m recipes.ko_en_small.run unpack PARTS OUT

MPNET is all-mpnet-base-v2, the English teacher; KOREAN a plain Korean encoder; RERANKER a re-ranker that was trained
with the rounds before the last (recipes/ko_en_reranker), as the bundled ko-en-reranker was; BEGIN and KEPT are blends
of those rounds; several last rounds side by side are what soup.py is for. Each stage can be redone alone.
`--set learning_rate=3e-5` and the like change a stage's settings, `--without silver neighbours` leaves parts of the
data out.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from munjang import BiEncoder, Dataset, train
from munjang.cli.train import settings
from munjang.data.examples import Examples
from munjang.training.run import is_begun
from recipes.ko_en_small.asked import asked
from recipes.ko_en_small.bills import bills
from recipes.ko_en_small.both import Both, neighbours, rescored, softened
from recipes.ko_en_small.data import Sets, file, joined, read
from recipes.ko_en_small.gathered import gathered
from recipes.ko_en_small.judges import judge, korean_silver, tutor
from recipes.ko_en_small.last import OF_SEARCH, last
from recipes.ko_en_small.measure import chosen, covered, measure, smaller, teachers
from recipes.ko_en_small.merge import merge
from recipes.ko_en_small.search import search
from recipes.ko_en_small.settings import KEPT, ROUND, UNUSED, check_parts, neighbourhoods
from recipes.ko_en_small.silver import scored_silver, scorer, silver
from recipes.ko_en_small.wiki import wiki
from recipes.ko_en_small.words import base, widen
from recipes.weights import blend, mixed, pack, unpack

Stage = tuple[Path, Callable[[], None]]  # what it makes, and how
# The third round goes on from the first one, with what teaches similarity
THIRD = {"learning_rate": 6e-5, "seed": 11}
WITHOUT = ["questions", "passages", "korean"]
SHARE = (1.0, 1.0, 0.7, 0.65)  # of the trained weights: words, and thirds of the layers (docs/results.md)
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
TO_SEARCH = {"max_steps": 2000, "learning_rate": 5e-5, "seed": 33}


def datasets(sets: Sets, teacher: Any, start: BiEncoder, silver: list[Examples]) -> dict[str, list[Dataset]]:
    """By what may be left out; one batch of each makes up an update.

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
    """All data at once, a batch of each kind an update.

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
    """What a round learns from."""
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
    """All stages in their order; what is there already is not made again."""
    start, made, rounds = work / "base", work / "silver", [work / f"round{number}" for number in (1, 2, 3)]
    made.mkdir(parents=True, exist_ok=True)
    taught = (start, mpnet, made, data)
    judges, teacher, mean = [work / f"judge{seed}" for seed in JUDGES], work / "tutor", work / "mean"

    def ended(
        begin: Path, kept: Path, out: Path, changes: dict[str, Any], without: Sequence[str] = (), **more: Any
    ) -> Stage:
        paths = (begin, kept, teacher, reranker, made, data, out)
        return out, lambda: last(*paths, changes=changes, without=list(without), **more)

    def blended(out: Path, *folders: Path, share: float | Sequence[float]) -> Stage:
        return out, lambda: blend(start, *folders, out, share=share)

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
        blended(work / "beside", rounds[0], share=0.7),
        (rounds[1], lambda: contrast(*taught, rounds[1], {"learning_rate": 1e-4}, [], work / "beside")),
        (rounds[2], lambda: contrast(*taught, rounds[2], THIRD, WITHOUT, work / "beside", rounds[0])),
        *(blended(out, *rounds, share=share) for out, share in ((half, 0.5), (most, 0.7), (mean, 1.0))),
        *((out, partial(judge, korean, data, out, seed)) for out, seed in zip(judges, JUDGES, strict=True)),
        (teacher, lambda: tutor(mpnet, data, teacher)),
        (made / "silver-ko.tsv", lambda: korean_silver(mean, *judges, data, made / "silver-ko.tsv")),
        ended(most, half, with_search[0], GENTLE),
        ended(with_search[0], half, with_search[1], GENTLE),
        ended(mean, half, alone, ALONE, OF_SEARCH),
        blended(held, with_search[1], alone, share=0.5),
        blended(work / "both", with_search[1], alone, share=0.8),
        ended(work / "both", held, work / "last4", AGAIN),
        blended(first, work / "last4", share=SHARE),
        blended(kept, first, share=KEPT),
        *(ended(first, kept, work / name, changes, UNUSED) for name, changes in FOUR.items()),
        (near, lambda: mixed(first, [*((work / name, shared(OF_FOUR)) for name in FOUR), (start, OF_BASE)], near)),
        *(
            ended(near, kept, work / name, changes, UNUSED, held=weight, is_of_words=True)
            for name, (weight, changes) in OF_WORDS.items()
        ),
        (spoken, lambda: blend(near, *(work / name for name in OF_WORDS), spoken, share=HALF)),
        (found, lambda: search(spoken, kept, reranker, made, data, found, changes=TO_SEARCH, without=["apart"])),
        (work / "model", lambda: merge(spoken, found, first, made, data, work / "model")),
        (work / "scores.json", lambda: measure(work / "model", data, work / "scores.json", None)),
    ]
    for path, make in stages:
        if path.exists():
            print(f"{path} is there", flush=True)
        else:
            print(f"{path} ...", flush=True)
            make()


def shared(shares: Sequence[float]) -> list[float]:
    """Of each of the four."""
    return [share / len(FOUR) for share in shares]


STAGES: dict[str, Callable[..., None]] = {
    "all": everything,
    "base": base,
    "widen": widen,
    "scorer": scorer,
    "silver": silver,
    "asked": asked,
    "gathered": gathered,
    "bills": bills,
    "wiki": wiki,
    "contrast": contrast,
    "judge": judge,
    "tutor": tutor,
    "korean": korean_silver,
    "last": last,
    "search": search,
    "merge": merge,
    "chosen": chosen,
    "blend": blend,
    "evaluate": measure,
    "smaller": smaller,
    "covered": covered,
    "teachers": teachers,
    "pack": pack,
    "unpack": unpack,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=list(STAGES))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--share", type=float, nargs="+", default=SHARE, help="of the trained weights in blend")
    parser.add_argument("--device", help="of what measures")
    parser.add_argument("--dtype", help="of evaluate and smaller (default: as the model is loaded)")
    parser.add_argument("--parts", type=int, default=2, help="of pack")
    parser.add_argument("--seed", type=int, default=1, help="of judge")
    parser.add_argument("--held", type=float, help="weight of what stays in its place in last and search")
    parser.add_argument("--of-passages", type=float, help="of that weight for questions and passages in search")
    parser.add_argument("--words", action="store_true", help="only the vectors of Korean pieces learn in last")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the training, KEY=VALUE")
    parser.add_argument("--beside", type=Path, help="a model that teaches in contrast too: what an earlier round gave")
    parser.add_argument("--begin", type=Path, help="weights that contrast goes on from (default: those of its model)")
    parser.add_argument("--without", nargs="*", default=[], help="parts of the data that contrast leaves out")
    options = parser.parse_args()
    held = {} if options.held is None else {"held": options.held}
    of_passages = {} if options.of_passages is None else {"of_passages": options.of_passages}
    rounds = {"beside": options.beside, "begin": options.begin}
    more: dict[str, dict[str, Any]] = {
        "contrast": {"changes": settings(options.set), "without": options.without, **rounds},
        "judge": {"seed": options.seed},
        "last": {
            "changes": settings(options.set),
            "without": options.without,
            "is_of_words": options.words,
            **held,
        },
        "search": {"changes": settings(options.set), "without": options.without, **held, **of_passages},
        "blend": {"share": options.share},
        "chosen": {"device": options.device},
        "evaluate": {"device": options.device, "dtype": options.dtype},
        "smaller": {"device": options.device, "dtype": options.dtype},
        "teachers": {"device": options.device},
        "pack": {"parts": options.parts},
    }
    STAGES[options.stage](*options.paths, **more.get(options.stage, {}))


if __name__ == "__main__":
    main()
