"""ko-en-small, stage by stage: from multilingual-e5-small and the data folder to a small Korean-English encoder.

    python -u -m recipes.ko_en_small.run base E5 DATA BASE                   the vocabulary pruned to Korean and English
    python -u -m recipes.ko_en_small.run scorer MPNET DATA SCORER            GPU: an English cross-encoder learns STS
    python -u -m recipes.ko_en_small.run silver MPNET SCORER DATA SILVER     GPU: it scores pairs and their translations
    python -u -m recipes.ko_en_small.run contrast BASE MPNET SILVER DATA OUT    GPU: everything at once
    python -u -m recipes.ko_en_small.run blend BASE OUT MODEL --share 0.6    between the start and the trained weights
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
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from munjang import BiEncoder, Dataset, TrainConfig, evaluate, train
from munjang.checkpoint.prune import prune
from munjang.cli.train import settings
from munjang.data.examples import Examples
from munjang.data.reading import read_examples
from munjang.data.tables import read_texts
from munjang.errors import unknown
from recipes.ko_en_small.data import Sets, crossed, file, joined, read
from recipes.ko_en_small.silver import scorer, silver

LINES = 307_000  # of each language: what the pieces are counted on
CONTRAST = TrainConfig(
    max_steps=1500,
    together=True,
    mixing="round_robin",
    learning_rate=5e-5,
    warmup=0.1,
    schedule="cosine",
    max_length=128,
    ema=0.999,
    matryoshka=(384, 256, 128, 64),
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


def datasets(sets: Sets, teacher: BiEncoder, start: BiEncoder, silver: list[Examples]) -> dict[str, list[Dataset]]:
    """By what may be left out; one batch of each makes up an update.

    The English teacher says how close English sentences and their translations are; the start itself, which has seen
    much Korean, says it of Korean ones, so that what it knows is not lost.
    """
    own = {"target": "own"}
    return {
        "sts": [
            Dataset(data=joined("STSb", [sets.sts[0], sets.sts[1], sets.sts[3]]), objective="cosent", batch_size=128),
            Dataset(data=sets.sts[2], objective="cosent", batch_size=64),
        ],
        "silver": [Dataset(data=each, objective="cosent", batch_size=128) for each in silver],
        "triplets": [Dataset(data=joined("NLI triplets", sets.triplets), objective="in_batch", batch_size=128)],
        "questions": [Dataset(data=joined("questions", sets.questions), objective="in_batch", batch_size=128)],
        "passages": [Dataset(data=joined("passages", sets.passages), objective="in_batch", batch_size=96)],
        "translations": [
            Dataset(data=each, objective="in_batch_kl", batch_size=192, teacher=teacher, sampler="no_duplicates")
            for each in sets.translations
        ],
        "neighbours": [
            Dataset(data=sets.english[0], objective="in_batch_kl", batch_size=256, teacher=teacher, options=own),
            Dataset(
                data=joined("answers", [each for each in sets.questions if each.name != "Korean questions"]),
                objective="in_batch_kl",
                batch_size=96,
                teacher=teacher,
                options=own,
            ),
        ],
        "korean": [
            Dataset(
                data=joined("Korean", sets.korean),
                objective="in_batch_kl",
                batch_size=128,
                teacher=start,
                # its cosines lie between 0.7 and 1
                options={**own, "teacher_temperature": 0.02},
            )
        ],
    }


def contrast(
    model: Path, teacher: Path, silver: Path, data: Path, out: Path, changes: dict[str, Any], without: list[str]
) -> None:
    """All data at once, a batch of each kind an update."""
    sets = read(data)
    print(sets, flush=True)
    parts = datasets(sets, BiEncoder.load(teacher), BiEncoder.load(model), scored_silver(silver))
    for name in without:
        if name not in parts:
            raise unknown("part of the data", name, parts)
    chosen = [each for name, part in parts.items() if name not in without for each in part]
    encoder = BiEncoder.load(model, dtype="float32")
    train(encoder, chosen, config=replace(CONTRAST, output=str(out), accumulate=len(chosen), **changes))


def blend(start: Path, trained: Path, out: Path, share: float) -> None:
    """Weights on the way from the start to the trained ones: what the start could do besides comes back.

    As WiSE-FT does (Wortsman et al. 2022). Figures: docs/log.md.
    """
    shutil.copytree(trained, out, dirs_exist_ok=True)
    first, last = (load_file(folder / "model.safetensors") for folder in (start, trained))
    mixed = {name: first[name].float().lerp(value.float(), share) for name, value in last.items()}
    save_file(mixed, out / "model.safetensors", {"format": "pt"})


def scored_silver(folder: Path) -> list[Examples]:
    """The pairs that a cross-encoder has scored: English ones, and Korean and crossed ones."""
    source = folder / "silver-en-ko.tsv"
    pairs = (("sentence1_ko", "sentence2_ko"), ("sentence1_en", "sentence2_ko"), ("sentence1_ko", "sentence2_en"))
    scale: dict[str, Any] = {"target": "scores", "score_range": (0.0, 1.0)}
    parts = [read_examples(source, texts=columns, **scale) for columns in pairs]
    korean = joined("silver Korean and crossed", [parts[0], parts[0], parts[1], parts[2]])
    english = read_examples(folder / "silver-en.tsv", texts=("sentence1", "sentence2"), **scale)
    both = read_examples(source, texts=("sentence1_en", "sentence2_en"), **scale)
    return [korean, joined("silver English", [english, both])]


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
    """Weights in half precision, spread over folders; everything else in the first."""
    weights = {name: tensor.half() for name, tensor in load_file(model / "model.safetensors").items()}
    sizes = np.cumsum([tensor.numel() for tensor in weights.values()])
    part_of = np.minimum((sizes - 1) * parts // sizes[-1], parts - 1)
    for part in range(parts):
        folder = out / f"part{part}"
        folder.mkdir(parents=True, exist_ok=True)
        some = {name: tensor for (name, tensor), at in zip(weights.items(), part_of, strict=True) if at == part}
        save_file(some, folder / "weights.safetensors")
    shutil.copytree(model, out / "part0/rest", ignore=shutil.ignore_patterns("*.safetensors"), dirs_exist_ok=True)


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
    "contrast": contrast,
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
    parser.add_argument("--without", nargs="*", default=[], help="parts of the data that contrast leaves out")
    options = parser.parse_args()
    more: dict[str, dict[str, Any]] = {
        "contrast": {"changes": settings(options.set), "without": options.without},
        "blend": {"share": options.share},
        "evaluate": {"device": options.device},
        "pack": {"parts": options.parts},
    }
    STAGES[options.stage](*options.paths, **more.get(options.stage, {}))


if __name__ == "__main__":
    main()
