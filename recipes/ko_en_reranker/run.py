"""ko-en-reranker, stage by stage: a cross-encoder for questions and passages in Korean and English.

    python -u -m recipes.ko_en_reranker.run train KO_EN_SMALL MPNET SILVER DATA OUT --layers 4    GPU
    python -u -m recipes.ko_en_reranker.run head OUT KO_EN_SMALL SILVER DATA NEW    only its head, on a CPU
    python -u -m recipes.ko_en_reranker.run evaluate RERANKER KO_EN_SMALL DATA OUT.json [--device cpu]
    python -u -m recipes.ko_en_reranker.run shares RERANKER KO_EN_SMALL DATA OUT.json --rows 80

SILVER is the folder of ko-en-small's recipe with the questions that were made from sentences.
It starts from layers of ko-en-small, which also finds the hard negatives; all-mpnet-base-v2 scores English candidates,
and the scores hold for their translations. `--set learning_rate=3e-5` and the like change the training's settings.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from munjang import BiEncoder, CrossEncoder, Dataset, TrainConfig, evaluate, train
from munjang.checkpoint.shorten import shorten
from munjang.cli.train import settings
from recipes.ko_en_reranker.data import Lists, lists, summary
from recipes.ko_en_reranker.head import fit_head
from recipes.ko_en_reranker.shares import shares
from recipes.ko_en_small.data import file, joined

RERANKER = TrainConfig(
    max_steps=2500,
    learning_rate=2e-4,
    warmup=0.1,
    schedule="cosine",
    mixing="round_robin",
    max_length=320,
    batch_tokens=262_144,
    ema=0.998,
    save_every=200,
    together=True,
    seed=7,
)
DOCUMENTS = {"documents": ("passages", "headings", "asked"), "gathered": ("gathered",)}
SCORES = {"num_sampled": 1, "scale": 1.0, "activation": "identity"}  # logits as they are, one easy negative more


def datasets(found: Lists) -> list[Dataset]:
    """One batch of each makes up an update."""
    parts = {name: [each for each in found.first_is_right if each.name in DOCUMENTS[name]] for name in DOCUMENTS}
    others = {name for names in DOCUMENTS.values() for name in names}
    asked = [each for each in found.first_is_right if each.name not in others]
    return [
        Dataset(data=joined("questions", asked), objective="cross_in_batch", batch_size=24, options=SCORES),
        *(
            Dataset(data=joined(name, some), objective="cross_in_batch", batch_size=24, options=SCORES)
            for name, some in parts.items()
        ),
        Dataset(data=found.triplets, objective="cross_in_batch", batch_size=48, options={**SCORES, "num_sampled": 4}),
        Dataset(data=found.scored, objective="listnet", batch_size=32),
        Dataset(data=found.pairs, objective="cross_bce", batch_size=64, sampler="random"),
    ]


def learn(model: Path, teacher: Path, made: Path, data: Path, out: Path, layers: int, changes: dict[str, Any]) -> None:
    """Mine, shorten, train."""
    found = lists(BiEncoder.load(model), BiEncoder.load(teacher), made, data)
    print(summary(found), flush=True)
    chosen = datasets(found)
    config = replace(RERANKER, output=str(out), accumulate=len(chosen), **changes)
    train(beginning(model, layers), chosen, config=config)


def beginning(model: Path, layers: int) -> CrossEncoder:
    """A cross-encoder of some layers of the encoder."""
    with TemporaryDirectory() as folder:
        start = BiEncoder.load(model, "cpu", "float32")
        print("layers", shorten(start.model, layers), flush=True)
        start.save(folder)
        return CrossEncoder.create(folder, num_labels=1, dtype="float32")


def measure(model: Path, first: Path, data: Path, out: Path, device: str | None, rows: int | None) -> None:
    """Retrieval with and without it, and similarity; `rows`: only so many questions."""
    finder, cross = BiEncoder.load(first, device), CrossEncoder.load(model, device)
    found = {}
    for name in ("korquad", "cranfield"):
        folder = data / "retrieval" / name
        found[name] = evaluate(finder, folder, kind="retrieval", max_rows=rows)
        options = {"first_stage": finder, "candidates": 100, "max_rows": rows}
        found[f"{name}-reranked"] = evaluate(cross, folder, kind="reranking", **options)
    for name in ("stsb-dev", "korsts-dev"):
        found[name] = evaluate(cross, file(data, f"sts/{name}"), kind="sts", texts=("sentence1", "sentence2"))
    record = {name: {**asdict(report), "score": report.score} for name, report in found.items()}
    out.write_text(json.dumps({"model": model.name, "reports": record}, indent=1, default=str))
    for name, report in found.items():
        more = {key: round(100 * value, 2) for key, value in report.metrics.items() if key in ("mrr@10", "recall@10")}
        print(f"{name:18} {report.main} {100 * report.score:.2f} {more}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stage", choices=["train", "head", "evaluate", "shares"])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--layers", type=int, default=4, help="of the re-ranker")
    parser.add_argument("--device", help="of evaluate")
    parser.add_argument("--rows", type=int, help="questions of evaluate (default: all)")
    parser.add_argument("--set", nargs="*", default=[], help="settings of the training, KEY=VALUE")
    options = parser.parse_args()
    stages: dict[str, Callable[..., None]] = {
        "train": partial(learn, layers=options.layers, changes=settings(options.set)),
        "head": fit_head,
        "shares": partial(shares, device=options.device, rows=options.rows),
        "evaluate": partial(measure, device=options.device, rows=options.rows),
    }
    stages[options.stage](*options.paths)


if __name__ == "__main__":
    main()
