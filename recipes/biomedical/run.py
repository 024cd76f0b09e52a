"""A domain worked out: biomedical questions and answers, by adaptation to the domain's texts, fine-tuning, and both.

    python -u -m recipes.biomedical.run MODEL DATA OUT.json [--rows 1000] [--sentences 2000] [--max-length 128]

DATA is a folder with qa/medquad.tsv[.xz]: question, answer, focus (the disease or drug asked about). No focus is on
both sides of the split, and training rows that share a question or an answer with the test are dropped. Every test
question looks for its answers among the answers of the test, and among all answers. docs/results.md has the outcome.
"""

import argparse
import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from munjang import BiEncoder, TrainConfig, evaluate, train
from munjang.data.examples import Examples
from munjang.data.reading import drop_overlap, read_examples
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.evaluation.kinds.corpus import Retrieval
from munjang.training.domain import METHODS

TEST_SHARE = 0.2
METRICS = ("ndcg@10", "mrr@10")
ADAPTING = TrainConfig(epochs=1, batch_size=32, learning_rate=3e-5, quiet=True)
TUNING = TrainConfig(epochs=1, batch_size=32, learning_rate=2e-5, quiet=True)


def read(data: Path, num_rows: int | None, seed: int = 0) -> tuple[Examples, Examples, Examples]:
    """Rows for training, rows of the test, and both before anything was dropped; whole focuses, drawn by the seed."""
    path = data / "qa/medquad.tsv"
    path = path if path.exists() else path.with_suffix(".tsv.xz")
    everything = read_examples(path, texts=("question", "answer"))
    focuses = np.array([focus.strip().casefold() for focus in read_texts(path, "focus")])
    assert len(focuses) == len(everything)
    names, which = np.unique(focuses, return_inverse=True)
    place = np.random.default_rng(seed).permutation(len(names))[which]
    order = np.argsort(place, kind="stable")
    order = order[focuses[order] != ""]  # 14 rows say nothing of theirs
    if num_rows is not None and num_rows < len(order):
        order = order[place[order] < place[order[num_rows]]]  # no focus is cut
    is_test = place[order] < place[order[int(len(order) * TEST_SHARE)]]
    test = everything.take(order[is_test])
    return drop_overlap(everything.take(order[~is_test]), [test]), test, everything.take(order)


def searches(test: Examples, everything: Examples) -> dict[str, Retrieval]:
    """The test's questions among its answers, and among all; whatever any row answers a question with is right."""
    numbers = {answer: f"answer {number}" for number, answer in enumerate(dict.fromkeys(everything.texts[1]))}
    queries = {f"question {number}": text for number, text in enumerate(dict.fromkeys(test.texts[0]))}
    answers: dict[str, list[str]] = {}
    for question, answer in zip(*everything.texts, strict=True):
        answers.setdefault(question, []).append(answer)
    corpora = {"test answers": set(test.texts[1]), "all answers": set(everything.texts[1])}
    return {
        name: Retrieval(
            name,
            {numbers[text]: text for text in numbers if text in texts},
            queries,
            {query: {numbers[each]: 1.0 for each in answers[text] if each in texts} for query, text in queries.items()},
        )
        for name, texts in corpora.items()
    }


def score(model: BiEncoder, searched: dict[str, Retrieval]) -> dict[str, Any]:
    """Both metrics on both corpora, times 100."""
    found: dict[str, Any] = {}
    for name, data in searched.items():
        metrics = evaluate(model, data, kind="retrieval").metrics
        found[name] = {metric: round(100 * metrics[metric], 2) for metric in METRICS}
    return found


def adapt(model: BiEncoder, method: str, texts: list[str], options: argparse.Namespace, seed: int) -> None:
    """Let the model read the training answers, without the questions."""
    objective, made = METHODS[method]
    examples = made(list(dict.fromkeys(texts)), f"training answers ({method})")
    if options.sentences is not None and options.sentences < len(examples):
        examples = examples.take(np.random.default_rng(seed).permutation(len(examples))[: options.sentences])
    train(model, examples, objective, config_of(ADAPTING, options, seed))


def config_of(config: TrainConfig, options: argparse.Namespace, seed: int) -> TrainConfig:
    """The same with what the command says."""
    size = options.batch_size or config.batch_size
    return replace(config, seed=seed, device=options.device, max_length=options.max_length, batch_size=size)


def story(method: str | None, options: argparse.Namespace, sets: Any, seed: int) -> dict[str, Any]:
    """One way from the model to its end: adapted by a method or not, then fine-tuned on questions and answers."""
    training, test, everything = sets
    model = BiEncoder.load(options.model, options.device, "float32", threads=options.threads)
    if options.max_length is not None:
        model.max_length = options.max_length  # before training as after it
    searched, found = searches(test, everything), {}
    for name in ([method] if method else ["as it is"]) + [f"{method}, then fine-tuned" if method else "fine-tuned"]:
        start = time.perf_counter()
        if name == method:
            adapt(model, method, training.texts[1], options, seed)
        elif name != "as it is":
            train(model, training, "in_batch", config_of(TUNING, options, seed))
        seconds = round(time.perf_counter() - start, 1)
        found[name] = {**score(model, searched), "training_s": seconds}
        print(f"seed {seed}  {name:28} {found[name]}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="folder or Hub name")
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    ways = ["none", "masked", "denoising", "pairs"]
    parser.add_argument("--methods", nargs="+", default=ways, choices=["none", *METHODS], help="of adaptation")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--rows", type=int, help="so many rows, as whole focuses (default: all 16,407)")
    parser.add_argument("--sentences", type=int, help="adapt on so many sentences or pairs (default: all)")
    parser.add_argument("--max-length", type=int, help="tokens of a text, in training and test (default: the model's)")
    parser.add_argument("--batch-size", type=int, help="of adaptation and fine-tuning (default: 32)")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int, help="CPU threads that encode (default: all cores)")
    options = parser.parse_args()
    sets = read(options.data, options.rows)
    record: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "settings": {name: value for name, value in vars(options).items() if name not in ("model", "data", "out")},
        "model": Path(options.model).name,
        "machine": processor(torch.device(options.device or ("cuda" if torch.cuda.is_available() else "cpu"))),
        "rows": {"training": len(sets[0]), "test": len(sets[1]), "all": len(sets[2])},
        "questions": len(set(sets[1].texts[0])),
        "answers": {"test": len(set(sets[1].texts[1])), "all": len(set(sets[2].texts[1]))},
        "results": {},
    }
    print(record, flush=True)
    for seed in options.seeds:
        for method in options.methods:
            for name, line in story(None if method == "none" else method, options, sets, seed).items():
                record["results"].setdefault(name, {})[f"seed {seed}"] = line
            options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
