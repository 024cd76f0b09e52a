"""ko-en-small, stage by stage: from multilingual-e5-small and the data folder to a small Korean-English encoder.

    python -u -m recipes.ko_en_small.run base E5 DATA BASE                   the vocabulary pruned to Korean and English
    python -u -m recipes.ko_en_small.run scorer MPNET DATA SCORER            GPU: an English cross-encoder learns STS
    python -u -m recipes.ko_en_small.run silver MPNET SCORER DATA SILVER     GPU: it scores pairs and their translations
    python -u -m recipes.ko_en_small.run asked DATA SILVER/asked.tsv         questions made from sentences of documents
    python -u -m recipes.ko_en_small.run gathered DATA SILVER/gathered.tsv   and of other sentences
    python -u -m recipes.ko_en_small.run contrast BASE MPNET SILVER DATA OUT    GPU: everything at once
    python -u -m recipes.ko_en_small.run contrast BASE MPNET SILVER DATA OUT2 --beside OUT    GPU: once more, with both
    python -u -m recipes.ko_en_small.run chosen BASE OUT [OUT2 ...] SILVER DATA    what shares give on sets kept back
    python -u -m recipes.ko_en_small.run blend BASE OUT [OUT2 ...] MODEL --share 0.6    weights in between
    python -u -m recipes.ko_en_small.run evaluate MODEL DATA OUT.json [--device cpu]
    python -u -m recipes.ko_en_small.run pack MODEL PARTS --parts 2          parts that fit the limits of a transfer
    python -u -m recipes.ko_en_small.run unpack PARTS OUT

MPNET is all-mpnet-base-v2, the English teacher. Each stage can be redone alone. `--set learning_rate=3e-5` and the like
change a stage's settings, `--without silver neighbours` leaves parts of the data out.
"""

import argparse
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from munjang import BiEncoder, Dataset, TrainConfig, evaluate, train
from munjang.checkpoint.prune import prune
from munjang.cli.train import settings
from munjang.data.examples import Examples
from munjang.data.tables import read_texts
from munjang.errors import unknown
from recipes.ko_en_small.asked import asked
from recipes.ko_en_small.both import Both, neighbours, rescored, softened
from recipes.ko_en_small.data import Sets, crossed, file, joined, read
from recipes.ko_en_small.gathered import gathered
from recipes.ko_en_small.silver import scored_silver, scorer, silver

LINES = 307_000  # of each language: what the pieces are counted on
SHARES = (0.4, 0.5, 0.6, 0.7, 0.8, 1.0)  # of the trained weights
CONTRAST = TrainConfig(
    max_steps=1500,
    together=True,
    mixing="round_robin",
    learning_rate=8e-5,
    warmup=0.1,
    schedule="cosine",
    max_length=320,
    ema=0.998,
    batch_tokens=131_072,
    matryoshka=(384, 256, 128, 64),
    matryoshka_weights=(1.0, 0.4, 0.3, 0.2),
    save_every=200,
    seed=7,
)


def base(model: Path, data: Path, out: Path) -> None:
    """Prune the vocabulary to the pieces that Korean and English text uses at least twice."""
    texts: list[str] = []
    for name in ("en-sentences", "ko-reviews"):
        texts += [line for line, _ in zip(read_texts(data / f"text/{name}.txt.xz"), range(LINES), strict=False)]
    encoder = BiEncoder.load(model, "cpu", "float32")
    report = prune(encoder.model, texts, min_count=2)
    print(report, flush=True)
    encoder.prompts = {}  # no prompt needed
    encoder.save(out)


def datasets(sets: Sets, teacher: Any, start: BiEncoder, silver: list[Examples]) -> dict[str, list[Dataset]]:
    """By what may be left out; one batch of each makes up an update.

    The English teacher says how close English sentences and their translations are; the start itself, which has seen
    much Korean and many passages, says it of those, so that what it knows is not lost.
    """

    def kl(name: str, parts: list[Examples], size: int, by: Any, **options: Any) -> Dataset:
        sampler = "no_duplicates" if len(parts[0].texts) > 1 else "random"
        options = {"target": "own", **options}
        data = joined(name, parts)
        return Dataset(
            data=data, objective="in_batch_kl", batch_size=size, teacher=by, options=options, sampler=sampler
        )

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
            Dataset(data=joined("passages", sets.passages[:-1]), objective="in_batch", batch_size=96),
            Dataset(data=sets.passages[-1], objective="in_batch", batch_size=96),  # gathered
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
) -> None:
    """All data at once, a batch of each kind an update; `beside`, an earlier round's model, teaches too."""
    chosen = prepared(model, teacher, silver, data, without, beside)
    encoder = BiEncoder.load(model, dtype="float32")
    train(encoder, chosen, config=replace(CONTRAST, output=str(out), accumulate=len(chosen), **changes))


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
    for name in without:
        if name not in parts:
            raise unknown("part of the data", name, parts)
    return [each for name, part in parts.items() if name not in without for each in part]


def blend(start: Path, *folders: Path, share: float) -> None:
    """Weights on the way from the start to the mean of trained ones: what the start could do besides comes back.

    As WiSE-FT and model soups do (Wortsman et al. 2022). Figures: docs/log.md.
    """
    *trained, out = folders
    shutil.copytree(trained[0], out, dirs_exist_ok=True)
    first, *others = (load_file(folder / "model.safetensors") for folder in (start, *trained))
    mixed = {
        name: value.float().lerp(torch.stack([other[name].float() for other in others]).mean(0), share)
        for name, value in first.items()
    }
    save_file(mixed, out / "model.safetensors", {"format": "pt"})


def chosen(start: Path, *paths: Path, device: str | None) -> None:
    """What shares of the trained weights give, on what is not reported: to choose the share of `blend` by.

    STS dev sets, and the mean reciprocal rank of a passage among all those that were kept back.
    """
    *trained, silver, data = paths
    held = read(data, silver).held
    for share in SHARES:
        with TemporaryDirectory() as folder:
            blend(start, *trained, Path(folder), share=share)
            encoder = BiEncoder.load(folder, device)
        scores = {each.name: _rank(encoder, each) for each in held}
        for name in ("stsb-dev", "korsts-dev"):
            scores[name] = evaluate(encoder, file(data, f"sts/{name}"), kind="sts").score
        scores["crossed"] = evaluate(encoder, crossed(data, "dev"), kind="sts").score
        print(share, {name: round(100 * score, 2) for name, score in scores.items()}, flush=True)


def _rank(encoder: BiEncoder, pairs: Examples) -> float:
    queries, passages = (encoder.encode(list(column), normalize=True) for column in pairs.texts)
    scores = queries @ passages.T
    ranks = (scores >= scores.diagonal()[:, None]).sum(1)
    return float((1 / ranks).mean())


def measure(model: Path, data: Path, out: Path, device: str | None) -> None:
    """Every reported set, as `munjang evaluate` measures it."""
    encoder = BiEncoder.load(model, device)
    found: dict[str, Any] = {}
    for name in ("stsb-test", "korsts-test", "stsb-dev", "korsts-dev", "sts12", "sts13", "sts14", "sick-dev"):
        ranges = {"score_range": (1.0, 5.0)} if name.startswith("sick") else {}
        texts = {"texts": ("sentence1", "sentence2")}
        found[name] = evaluate(encoder, file(data, f"sts/{name}"), kind="sts", **ranges, **texts)
    found["crossed-dev"] = evaluate(encoder, crossed(data, "dev"), kind="sts")
    for name in ("korquad", "cranfield"):
        found[name] = evaluate(encoder, data / "retrieval" / name, kind="retrieval")
    found["stackoverflow"] = evaluate(encoder, file(data, "clustering/stackoverflow"), kind="clustering", max_rows=5000)
    record = {name: asdict(report) for name, report in found.items()}
    out.write_text(json.dumps({"model": model.name, "reports": record}, indent=1, default=str))
    for name, report in found.items():
        print(f"{name:14} {report.main} {100 * report.score:.2f}", flush=True)


def pack(model: Path, out: Path, parts: int) -> None:
    """Weights in half precision, spread over folders; everything else, a head's weights too, in the first."""
    weights = {name: tensor.half() for name, tensor in load_file(model / "model.safetensors").items()}
    sizes = np.cumsum([tensor.numel() for tensor in weights.values()])
    part_of = np.minimum((sizes - 1) * parts // sizes[-1], parts - 1)
    for part in range(parts):
        folder = out / f"part{part}"
        folder.mkdir(parents=True, exist_ok=True)
        some = {name: tensor for (name, tensor), at in zip(weights.items(), part_of, strict=True) if at == part}
        save_file(some, folder / "weights.safetensors")

    def weights_of(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder) == model and name == "model.safetensors"]

    shutil.copytree(model, out / "part0/rest", ignore=weights_of, dirs_exist_ok=True)


def unpack(parts: Path, out: Path) -> None:
    """The folder that `pack` took apart."""
    shutil.copytree(parts / "part0/rest", out, dirs_exist_ok=True)
    weights: dict[str, torch.Tensor] = {}
    for path in sorted(parts.glob("part*/weights.safetensors")):
        weights |= {name: tensor.float() for name, tensor in load_file(path).items()}
    save_file(weights, out / "model.safetensors", {"format": "pt"})


STAGES: dict[str, Callable[..., None]] = {
    "base": base,
    "scorer": scorer,
    "silver": silver,
    "asked": asked,
    "gathered": gathered,
    "contrast": contrast,
    "chosen": chosen,
    "blend": blend,
    "evaluate": measure,
    "pack": pack,
    "unpack": unpack,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=list(STAGES))
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--share", type=float, default=0.6, help="of the trained weights in blend")
    parser.add_argument("--device", help="of evaluate")
    parser.add_argument("--parts", type=int, default=2, help="of pack")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the training, KEY=VALUE")
    parser.add_argument("--beside", type=Path, help="a model that teaches in contrast too: what an earlier round gave")
    parser.add_argument("--without", nargs="*", default=[], help="parts of the data that contrast leaves out")
    options = parser.parse_args()
    more: dict[str, dict[str, Any]] = {
        "contrast": {"changes": settings(options.set), "without": options.without, "beside": options.beside},
        "blend": {"share": options.share},
        "chosen": {"device": options.device},
        "evaluate": {"device": options.device},
        "pack": {"parts": options.parts},
    }
    STAGES[options.stage](*options.paths, **more.get(options.stage, {}))


if __name__ == "__main__":
    main()
