"""Classifiers from a few examples: frozen, few-shot and zero-shot, beside scikit-learn and SetFit.

    python -m benchmarks.classify MODEL TABLE.tsv.xz [--shots 8 16] [--setfit PYTHON] [--names FILE] [--out FILE.json]

The table has the columns text and label (whole numbers). Rows that are learned from are drawn, others of every label
are the test. --names: a JSON object of label -> name, for zero-shot. --setfit: the interpreter of an environment with
setfit; it gets the same model, rows and number of pairs.
"""

import argparse
import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from munjang import BiEncoder
from munjang.tasks.classify.calibration import expected_error
from munjang.tasks.classify.classifier import Classifier
from munjang.tasks.classify.config import ClassifyConfig
from munjang.tasks.classify.reading import read_labelled
from munjang.tasks.classify.zero_shot_classifiers import zero_shot

TEST_ROWS = 50  # of each label


def draw(labels: list[int], shots: int, seed: int) -> tuple[list[int], list[int]]:
    """Rows to learn from and rows to test on."""
    learned, test = [], []
    order = np.random.default_rng(seed).permutation(len(labels)).tolist()
    for label in sorted(set(labels)):
        rows = [row for row in order if labels[row] == label]
        learned += rows[:shots]
        test += rows[shots : shots + TEST_ROWS]
    return learned, test


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return the result of some work, and its seconds by the clock and of the processor."""
    start, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, {"wall_s": round(time.perf_counter() - start, 1), "cpu_s": round(time.process_time() - cpu, 1)}


def scores(classifier: Classifier, items: Any, truth: list[int]) -> dict[str, float]:
    """Accuracy and calibration error on the test rows."""
    probabilities = classifier.probabilities(items)
    right = np.array([classifier.labels[at] for at in probabilities.argmax(1)]) == np.array(truth)
    error = expected_error(probabilities.max(1), right)
    return {"accuracy": round(float(right.mean()), 4), "calibration_error": round(error, 4)}


def setfit(python: str, given: dict[str, Any], truth: list[int]) -> dict[str, float]:
    """SetFit in its own environment on the same rows."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "in.json"), Path(folder, "out.json")
        source.write_text(json.dumps({**given, "folder": folder}), encoding="utf-8")
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": ""}
        script = str(Path(__file__).with_name("setfit_side.py"))
        subprocess.run([python, script, str(source), str(result)], check=True, env=environment, stdout=2)
        found = json.loads(result.read_text())
    right = np.array(found["predicted"]) == np.array(truth)
    times = {name: round(found[name], 1) for name in ("wall_s", "cpu_s")}
    return {"accuracy": round(float(right.mean()), 4), **times}


def compare(options: argparse.Namespace, model: BiEncoder, shots: int, names: dict[str, str]) -> dict[str, Any]:
    """All ways on one draw."""
    texts, raw = read_labelled([str(options.table)])
    labels = [int(label) for label in raw]
    learned, test = draw(labels, shots, options.seed)
    some, some_labels = [texts[row] for row in learned], [labels[row] for row in learned]
    asked, truth = [texts[row] for row in test], [labels[row] for row in test]
    vectors, test_vectors = model.encode(some), model.encode(asked)
    result: dict[str, Any] = {"shots": shots, "rows": len(some), "test": len(asked)}

    def note(name: str, found: dict[str, Any]) -> None:
        result[name] = found
        print(json.dumps({"shots": shots, name: found}), flush=True)

    theirs = LogisticRegression(C=1.0, tol=1e-6, max_iter=2000).fit(vectors, some_labels)
    note("scikit-learn, cost 1", {"accuracy": round(float(np.mean(theirs.predict(test_vectors) == truth)), 4)})
    plain = Classifier.fit(vectors, some_labels, config=ClassifyConfig(cost=1.0, calibration="none"))
    note("frozen, cost 1, not calibrated", scores(plain, test_vectors, truth))
    for method in ("temperature", "platt"):
        fitted, took = timed(
            lambda m=method: Classifier.fit(vectors, some_labels, config=ClassifyConfig(calibration=m))
        )
        note(f"frozen, {method}", {**scores(fitted, test_vectors, truth), **took, "cost": fitted.report["cost"]})
    if names:
        described = zero_shot(names, model)
        found = np.array([int(label) for label in described.predict(test_vectors)])
        note("zero-shot, names of the labels", {"accuracy": round(float(np.mean(found == truth)), 4)})
    config = ClassifyConfig(method="few_shot", num_folds=options.folds, seed=options.seed)
    tuned, took = timed(lambda: Classifier.fit(some, some_labels, model, config, progress=False))
    note("few-shot", {**scores(tuned, asked, truth), **took, "folds": options.folds, "num_pairs": config.num_pairs})
    if options.setfit:
        given = {"model": str(options.model), "texts": some, "labels": some_labels, "test": asked}
        given |= {"seed": options.seed, "num_pairs": config.num_pairs}
        note("SetFit", setfit(options.setfit, given, truth))
    return result


def main() -> None:
    """Compare, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--shots", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--folds", type=int, default=0, help="of few-shot: parts held out to calibrate; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--setfit", help="interpreter of an environment with setfit")
    parser.add_argument("--names", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = json.loads(options.names.read_text(encoding="utf-8")) if options.names else {}
    model = BiEncoder.load(options.model, device="cpu", threads=options.threads)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.processor() or platform.machine(),
        "model": options.model.name,
        "table": options.table.name,
        "seed": options.seed,
        "runs": [compare(options, model, shots, names) for shots in options.shots],
    }
    if options.out:
        options.out.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
