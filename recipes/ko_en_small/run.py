"""ko-en-small, stage by stage: from multilingual-e5-small and the data folder to a small Korean-English encoder.

    python -u -m recipes.ko_en_small.run base E5 DATA OUT           here: the vocabulary pruned to Korean and English
    python -u -m recipes.ko_en_small.run contrast BASE DATA OUT     GPU: STS, triplets, translations, questions at once
    python -u -m recipes.ko_en_small.run evaluate MODEL DATA OUT.json [--device cpu]
    python -u -m recipes.ko_en_small.run pack MODEL OUT --parts 2   a folder in parts that fit the limits of a transfer
    python -u -m recipes.ko_en_small.run unpack PARTS OUT

Each stage can be redone alone. `--set learning_rate=3e-5` and the like change a stage's settings.
"""

import argparse
import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from munjang import BiEncoder, Dataset, TrainConfig, evaluate, train
from munjang.checkpoint.prune import prune
from munjang.cli.train import settings
from munjang.data.tables import read_texts
from recipes.ko_en_small.data import Sets, crossed, file, joined, read

LINES = 307_000  # of each language: what the pieces are counted on
CONTRAST = TrainConfig(
    max_steps=2000,
    accumulate=4,  # one batch of each dataset an update
    mixing="round_robin",
    learning_rate=5e-5,
    warmup=0.1,
    schedule="cosine",
    max_length=128,
    ema=0.999,
    matryoshka=(384, 256, 128, 64),
    save_every=1000,
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


def datasets(sets: Sets) -> list[Dataset]:
    """One of each kind; their batches make up an update together."""
    return [
        Dataset(data=joined("STS", sets.sts), objective="cosent", batch_size=192, sampler="random"),
        Dataset(data=joined("NLI triplets", sets.triplets), objective="in_batch", batch_size=128),
        Dataset(
            data=joined("translations", sets.translations),
            objective="in_batch",
            batch_size=192,
            options={"is_symmetric": True},
        ),
        Dataset(data=joined("questions", sets.questions), objective="in_batch", batch_size=128),
    ]


def contrast(model: Path, data: Path, out: Path, changes: dict[str, Any]) -> None:
    """All data at once, a batch of each kind an update."""
    sets = read(data)
    print(sets, flush=True)
    encoder = BiEncoder.load(model, dtype="float32")
    train(encoder, datasets(sets), config=replace(CONTRAST, output=str(out), **changes))


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["base", "contrast", "evaluate", "pack", "unpack"])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--device")
    parser.add_argument("--parts", type=int, default=2)
    parser.add_argument("--set", nargs="*", default=[], help="settings of the training, KEY=VALUE")
    options = parser.parse_args()
    paths = options.paths
    if options.stage == "contrast":
        contrast(*paths, settings(options.set))
    elif options.stage == "evaluate":
        measure(*paths, options.device)
    elif options.stage == "pack":
        pack(*paths, options.parts)
    else:
        {"base": base, "unpack": unpack}[options.stage](*paths)


if __name__ == "__main__":
    main()
