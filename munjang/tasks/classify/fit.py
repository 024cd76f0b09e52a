"""Fit a classifier: hold rows out in turn to choose, calibrate and report; then learn from all of them.

N rows, D dimension, C classes.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.evaluation.metrics.classification import best_f1
from munjang.progress import Progress
from munjang.tasks.classify import calibration, linear_head
from munjang.tasks.classify.calibration import Calibration
from munjang.tasks.classify.config import ClassifyConfig
from munjang.tasks.classify.few_shot import fine_tune
from munjang.tasks.classify.linear_head import NO_FOLD, Head
from munjang.tasks.classify.report import as_rows, confidences, measure
from munjang.tasks.classify.targets import Targets
from munjang.training.config import TrainConfig
from munjang.types import Bools, Doubles, Floats, Ints
from munjang.vectors.logistic import COSTS

DEFAULT_COST = 1.0  # scikit-learn's, where nothing can be held out to choose by
MULTI_LABEL_THRESHOLD = 0.5  # of the probability that a text has one of several labels


@dataclass(frozen=True)
class Fitted:
    """The parts of a classifier, and its report on held-out rows."""

    head: Head
    calibration: Calibration
    threshold: float
    model: BiEncoder | None  # where it was trained
    report: dict[str, Any]


@dataclass(frozen=True)
class HeldOut:
    """Logits of rows by heads that have not learned from them."""

    logits_NC: Doubles
    has_NC: Bools
    fold_N: Ints


def fit_all(
    texts: list[str] | None,
    vectors_ND: Floats,
    targets: Targets,
    model: BiEncoder | None,
    config: ClassifyConfig,
    others: Any,
    progress: bool | None,
) -> Fitted:
    """Choose by what is held out, then learn from every row. `others`: vectors, or texts for few_shot."""
    report: dict[str, Any] = {"rows": len(vectors_ND), "labels": len(targets.names), "notes": _notes(targets, config)}
    has_NC, is_multi_label = targets.has_NC, targets.is_multi_label
    fold_N = _folds(targets, config)
    _check_threshold(targets, config, fold_N, others)
    costs = COSTS if config.cost is None else (config.cost,)
    by_cost = _held_out(texts, vectors_ND, targets, model, config, fold_N, costs, progress)
    is_held = fold_N != NO_FOLD
    has_held = bool(is_held.any())
    cost = linear_head.best_cost(by_cost, has_NC, is_multi_label) if has_held else config.cost or DEFAULT_COST
    trained = None
    if config.method == "few_shot":
        assert texts is not None
        assert model is not None
        trained = fine_tune(model, texts, has_NC, _training(config, model, progress), config.num_pairs)
        vectors_ND = trained.encode(texts, progress=progress)
        others = None if others is None else trained.encode(others, progress=progress)
    head = linear_head.fit(vectors_ND, has_NC, cost, is_multi_label)
    report["cost"] = cost
    if not has_held:
        return Fitted(
            head,
            calibration.none(len(targets.names)),
            MULTI_LABEL_THRESHOLD if is_multi_label else 0.0,
            trained,
            report,
        )
    held = HeldOut(by_cost[cost][is_held], has_NC[is_held], fold_N[is_held])
    found = calibration.fit(held.logits_NC, held.has_NC, config.calibration, is_multi_label)
    probabilities_NC = calibration.cross_fitted(
        held.logits_NC, held.has_NC, held.fold_N, config.calibration, is_multi_label
    )
    of_others = None if others is None else found.probabilities(head.logits(others), is_multi_label).max(1)
    threshold = _threshold(probabilities_NC, held.has_NC, config, of_others, is_multi_label)
    report |= _report(probabilities_NC, held, is_multi_label, threshold)
    report["temperature"] = float(1 / found.scale_C.mean())
    return Fitted(head, found, threshold, trained, report)


def _check_threshold(targets: Targets, config: ClassifyConfig, fold_N: Ints, others: Any) -> None:
    """Refuse settings of the threshold that need rows which are not there."""
    if others is None and config.min_accuracy is None:
        return
    given = "min_accuracy" if others is None else "others"
    if targets.is_multi_label:
        raise InputError(f"With several labels a text the threshold is the one with the best F1; leave {given} out.")
    if not (fold_N != NO_FOLD).any():
        raise InputError(f"{given} sets a threshold on held-out rows; give two examples of a label, and num_folds.")


def _folds(targets: Targets, config: ClassifyConfig) -> Ints:
    if not config.folds:
        return np.full(len(targets.has_NC), NO_FOLD)
    return linear_head.fold_rows(targets.has_NC, config.folds, config.seed)


def _held_out(
    texts: list[str] | None,
    vectors_ND: Floats,
    targets: Targets,
    model: BiEncoder | None,
    config: ClassifyConfig,
    fold_N: Ints,
    costs: tuple[float, ...],
    progress: bool | None,
) -> dict[float, Doubles]:
    """Return the logits of held-out rows; few_shot trains an encoder without them too."""
    found = {cost: np.full(targets.has_NC.shape, np.nan) for cost in costs}
    folds = np.unique(fold_N[fold_N != NO_FOLD]).tolist()
    with Progress(len(folds), "held-out parts", progress) as bar:
        for fold in folds:
            here = np.where(fold_N == fold, 0, NO_FOLD)
            if config.method == "few_shot":
                assert texts is not None
                assert model is not None
                learned = np.flatnonzero(here == NO_FOLD)
                some = [texts[row] for row in learned.tolist()]
                training = _training(config, model, progress)
                encoder = fine_tune(model, some, targets.has_NC[learned], training, config.num_pairs)
                vectors_ND = encoder.encode(texts, progress=False)
            part = linear_head.held_out_logits(vectors_ND, targets.has_NC, here, costs, targets.is_multi_label)
            for cost, logits_NC in part.items():
                found[cost][here == 0] = logits_NC[here == 0]
            bar.advance()
    return found


def _training(config: ClassifyConfig, model: BiEncoder, progress: bool | None) -> TrainConfig:
    return TrainConfig(
        epochs=config.epochs,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        seed=config.seed,
        device=str(model.device),
        quiet=progress is False,
    )


def _threshold(
    probabilities_NC: Doubles, has_NC: Bools, config: ClassifyConfig, others: Doubles | None, is_multi_label: bool
) -> float:
    if is_multi_label:
        best = best_f1(probabilities_NC.ravel(), has_NC.ravel()).threshold
        return MULTI_LABEL_THRESHOLD if np.isnan(best) else best
    confidence_N, right_N = confidences(probabilities_NC, has_NC, False)
    least = 0.0
    if config.min_accuracy is not None:
        least = calibration.threshold_for_accuracy(confidence_N, right_N, config.min_accuracy)
        reached = float(right_N[confidence_N >= least].mean())
        if reached < config.min_accuracy:
            warnings.warn(
                f"No threshold makes {config.min_accuracy:.0%} of the held-out answers right; with the one chosen, "
                f"{reached:.0%} are. Give more examples, or ask for less.",
                stacklevel=4,
            )
    return least if others is None else max(least, calibration.threshold_against(confidence_N, right_N, others))


def _report(probabilities_NC: Doubles, held: HeldOut, is_multi_label: bool, threshold: float) -> dict[str, Any]:
    plain = calibration.none(held.logits_NC.shape[1]).probabilities(held.logits_NC, is_multi_label)
    before = confidences(plain, held.has_NC, is_multi_label)
    return {
        "held_out": len(held.has_NC),
        "calibration_error_before": calibration.expected_error(*before),
        "reliability_before": as_rows(calibration.reliability(*before)),
        **measure(probabilities_NC, held.has_NC, is_multi_label, threshold),
    }


def _notes(targets: Targets, config: ClassifyConfig) -> list[str]:
    single = targets.single
    if config.folds and len(single) == len(targets.names) and not targets.is_multi_label:
        return ["one example of each label: nothing could be held out, so probabilities are not calibrated"]
    shown = ", ".join(str(name) for name in single[:5]) + (" ..." if len(single) > 5 else "")
    return [f"one example of {shown}: never held out, so nothing is known of how well it is found"] if single else []
