"""BinaryClassificationEvaluator: the best thresholds of similarities for pairs that mean the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.compat.evaluation.base import PAIRWISE, BaseEvaluator, shown
from munjang.evaluation.metrics.classification import average_precision, best_accuracy, best_f1

METRICS = ("accuracy", "accuracy_threshold", "f1", "precision", "recall", "f1_threshold", "ap", "mcc")
LOWER_IS_CLOSER = ("euclidean", "manhattan")


class BinaryClassificationEvaluator(BaseEvaluator):
    """Accuracy, F1, average precision and Matthews' correlation at the best threshold."""

    def __init__(
        self,
        sentences1: Sequence[str],
        sentences2: Sequence[str],
        labels: Sequence[int],
        name: str = "",
        batch_size: int = 32,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        truncate_dim: int | None = None,
        similarity_fn_names: list[str] | None = None,
    ) -> None:
        super().__init__()
        assert len(sentences1) == len(sentences2) == len(labels), "Every pair needs a label."
        assert all(label in (0, 1) for label in labels), "Labels are 0 or 1."
        self.sentences1, self.sentences2, self.labels = sentences1, sentences2, labels
        self.name, self.batch_size, self.show_progress_bar = name, batch_size, shown(show_progress_bar)
        self.write_csv, self.truncate_dim = write_csv, truncate_dim
        self.similarity_fn_names = list(similarity_fn_names or [])
        self.csv_file = f"binary_classification_evaluation{'_' + name if name else ''}_results.csv"
        self._name_columns()

    def _name_columns(self) -> None:
        self.csv_headers = [
            *("epoch", "steps"),
            *(f"{name}_{metric}" for name in self.similarity_fn_names for metric in METRICS),
        ]

    @classmethod
    def from_input_examples(cls, examples: Sequence[Any], **kwargs: Any) -> "BinaryClassificationEvaluator":
        """Take the pairs of InputExamples."""
        first, second = ([example.texts[at] for example in examples] for at in (0, 1))
        return cls(first, second, [example.label for example in examples], **kwargs)

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        if not self.similarity_fn_names:
            self.similarity_fn_names = [model.similarity_fn_name]
            self._name_columns()
        scores = self.compute_metrics(model)
        row = [scores[name][metric] for name in self.similarity_fn_names for metric in METRICS]
        self.write_row(output_path, [epoch, steps, *row])
        metrics = {f"{name}_{metric}": value for name, values in scores.items() for metric, value in values.items()}
        if len(self.similarity_fn_names) > 1:
            first = next(iter(scores.values()))
            metrics |= {f"max_{metric}": max(each[metric] for each in scores.values()) for metric in first}
            self.primary_metric = "max_ap"
        else:
            self.primary_metric = f"{self.similarity_fn_names[0]}_ap"
        return self.finished(model, metrics, epoch, steps)

    def compute_metrics(self, model: Any) -> dict[str, dict[str, float]]:
        """Return the metrics of each similarity."""
        texts = list(dict.fromkeys([*self.sentences1, *self.sentences2]))
        vector_of = dict(zip(texts, self.embed_inputs(model, texts), strict=True))
        first, second = (
            np.stack([vector_of[text] for text in column]) for column in (self.sentences1, self.sentences2)
        )
        return {
            name: metrics_of(PAIRWISE[name](first, second).cpu().numpy(), self.labels, name in LOWER_IS_CLOSER)
            for name in self.similarity_fn_names
        }

    compute_metrices = compute_metrics

    @staticmethod
    def find_best_acc_and_threshold(scores: Any, labels: Any, high_score_more_similar: bool) -> tuple[float, float]:
        """Return the best accuracy and its threshold."""
        sign = 1 if high_score_more_similar else -1
        given, is_same = sign * np.asarray(scores), np.asarray(labels) == 1
        best, of_none = best_accuracy(given, is_same), float((~is_same).mean())
        if best.value <= of_none:  # to say no to everything is as good
            return of_none, sign * float(np.nextafter(given.max(), np.inf, dtype=np.asarray(scores).dtype))
        return best.value, sign * best.threshold

    @staticmethod
    def find_best_f1_and_threshold(
        scores: Any, labels: Any, high_score_more_similar: bool
    ) -> tuple[float, float, float, float]:
        """Return the best F1, its precision, recall and threshold."""
        sign = 1 if high_score_more_similar else -1
        if not np.any(np.asarray(labels) == 1):
            return 0, 0, 0, 0
        best = best_f1(sign * np.asarray(scores), np.asarray(labels) == 1)
        return best.value, best.precision, best.recall, sign * best.threshold


def metrics_of(similarities: Any, labels: Any, is_negative: bool = False) -> dict[str, float]:
    """Return the metrics of similarities: higher is closer; distances are their negatives."""
    scores, is_same = similarities.astype(np.float64), np.asarray(labels) == 1
    accuracy, accuracy_threshold = BinaryClassificationEvaluator.find_best_acc_and_threshold(similarities, labels, True)
    f1, precision, recall, threshold = BinaryClassificationEvaluator.find_best_f1_and_threshold(scores, labels, True)
    sign = -1 if is_negative else 1  # thresholds are those of the distances
    return {
        "accuracy": accuracy,
        "accuracy_threshold": sign * accuracy_threshold,
        "f1": f1,
        "f1_threshold": sign * threshold,
        "precision": precision,
        "recall": recall,
        "ap": average_precision(scores, is_same) if is_same.any() else 0.0,
        "mcc": _matthews(scores >= threshold, is_same),
    }


def _matthews(said: Any, is_same: Any) -> float:
    """Return Matthews' correlation of two binary columns; 0 where one of them is constant."""
    if said.all() or not said.any() or is_same.all() or not is_same.any():
        return 0.0
    return float(np.corrcoef(said, is_same)[0, 1])
