"""Make ko-en-reranker: a cross-encoder for questions and passages in Korean and English.

    python -u -m recipes.ko_en_reranker.run all KO_EN_SMALL MPNET SILVER DATA WORK                       GPU
    python -u -m recipes.ko_en_reranker.run evaluate RERANKER KO_EN_SMALL DATA OUT.json [--device cpu]

SILVER is the folder of ko-en-small's recipe with the questions that were made from sentences. It starts from layers of
ko-en-small, which also finds the hard negatives; all-mpnet-base-v2 scores English candidates, and the scores hold for
their translations. Its head is fitted anew on the trained encoder: WORK/model, its scores are in WORK/scores.json.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from munjang import BiEncoder, CrossEncoder, Dataset, TrainConfig, evaluate, train
from munjang.checkpoint.shorten import shorten
from recipes.ko_en_reranker.data import Lists, lists, summary
from recipes.ko_en_reranker.head import fit_head
from recipes.ko_en_small.data import file, joined

NUM_LAYERS = 6
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


def everything(model: Path, teacher: Path, made: Path, data: Path, work: Path) -> None:
    """Train, fit the head, and measure."""
    learn(model, teacher, made, data, work / "trained")
    fit_head(work / "trained", model, made, data, work / "model")
    measure(work / "model", model, data, work / "scores.json", None)


def learn(model: Path, teacher: Path, made: Path, data: Path, out: Path) -> None:
    """Mine negatives, shorten the encoder, train."""
    found = lists(BiEncoder.load(model), BiEncoder.load(teacher), made, data)
    print(summary(found), flush=True)
    chosen = datasets(found)
    config = replace(RERANKER, output=str(out), accumulate=len(chosen))
    train(beginning(model, NUM_LAYERS), chosen, config=config)


def beginning(model: Path, layers: int) -> CrossEncoder:
    """A cross-encoder of some layers of the encoder."""
    with TemporaryDirectory() as folder:
        start = BiEncoder.load(model, "cpu", "float32")
        print("layers", shorten(start.model, layers), flush=True)
        start.save(folder)
        return CrossEncoder.create(folder, num_labels=1, dtype="float32")


def measure(model: Path, first: Path, data: Path, out: Path, device: str | None) -> None:
    """Evaluate retrieval with and without it, and similarity."""
    finder, cross = BiEncoder.load(first, device), CrossEncoder.load(model, device)
    found = {}
    for name in ("korquad", "cranfield"):
        folder = data / "retrieval" / name
        found[name] = evaluate(finder, folder, kind="retrieval")
        options = {"first_stage": finder, "candidates": 100}
        found[f"{name}-reranked"] = evaluate(cross, folder, kind="reranking", **options)
    for name in ("stsb-dev", "korsts-dev"):
        found[name] = evaluate(cross, file(data, f"sts/{name}"), kind="sts", texts=("sentence1", "sentence2"))
    record = {name: {**report.to_json(), "score": report.score} for name, report in found.items()}
    out.write_text(json.dumps({"model": model.name, "reports": record}, indent=1, default=str))
    for name, report in found.items():
        more = {key: round(100 * value, 2) for key, value in report.metrics.items() if key in ("mrr@10", "recall@10")}
        print(f"{name:18} {report.main} {100 * report.score:.2f} {more}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["all", "evaluate"])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--device", help="of evaluate")
    options = parser.parse_args()
    if options.command == "all":
        everything(*options.paths)
    else:
        measure(*options.paths, device=options.device)


if __name__ == "__main__":
    main()
