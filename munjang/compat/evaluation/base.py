"""The base of evaluators under their names: metrics, a CSV file, the model's card."""

import csv
import logging
import os
from collections.abc import Sequence
from typing import Any

from munjang.compat.similarity_functions import (
    SimilarityFunction,
    pairwise_cos_sim,
    pairwise_dot_score,
    pairwise_euclidean_sim,
    pairwise_manhattan_sim,
)

logger = logging.getLogger(__name__)
PAIRWISE = {
    "cosine": pairwise_cos_sim,
    "dot": pairwise_dot_score,
    "euclidean": pairwise_euclidean_sim,
    "manhattan": pairwise_manhattan_sim,
}


class BaseEvaluator:
    """Call it with a model; it returns metrics by name. `primary_metric` names the one that decides."""

    greater_is_better = True
    primary_metric: str | None = None
    name = ""
    csv_file = ""
    write_csv = True
    batch_size = 32
    show_progress_bar: bool | None = False
    truncate_dim: int | None = None

    def __init__(self) -> None:
        self.csv_headers: list[str] = ["epoch", "steps"]

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        raise NotImplementedError

    def prefix_name_to_metrics(self, metrics: dict[str, Any], name: str) -> dict[str, Any]:
        """Put the evaluator's name before those of its metrics."""
        if not name:
            return {metric: _number(value) for metric, value in metrics.items()}
        if self.primary_metric is not None and not self.primary_metric.startswith(f"{name}_"):
            self.primary_metric = f"{name}_{self.primary_metric}"
        return {f"{name}_{metric.replace('/', '_')}": _number(value) for metric, value in metrics.items()}

    def store_metrics_in_model_card_data(
        self, model: Any, metrics: dict[str, Any], epoch: float = 0, step: int = 0
    ) -> None:
        """Keep the metrics for the model's card."""
        if hasattr(model, "model_card_data"):
            model.model_card_data.set_evaluation_metrics(self, metrics, epoch, step)

    def finished(self, model: Any, metrics: dict[str, Any], epoch: Any, steps: int) -> dict[str, Any]:
        """Return metrics under the evaluator's name, kept for the card."""
        named = self.prefix_name_to_metrics(metrics, self.name)
        self.store_metrics_in_model_card_data(model, named, epoch, steps)
        return named

    def write_row(self, folder: str | None, row: Sequence[Any]) -> None:
        """Append a row to the CSV file, under its headers."""
        if folder is None or not self.write_csv:
            return
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, self.csv_file)
        is_new = not os.path.isfile(path)
        with open(path, "w" if is_new else "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(self.csv_headers)
            writer.writerow(row)

    def embed_inputs(self, model: Any, sentences: Any, encode_fn_name: str | None = None, **kwargs: Any) -> Any:
        """Return vectors of texts: as queries, as documents, or as neither."""
        names = {"query": "encode_query", "document": "encode_document"}
        encode = getattr(model, names.get(encode_fn_name or "", "encode"))
        options = {"batch_size": self.batch_size, "show_progress_bar": self.show_progress_bar, **kwargs}
        return encode(sentences, truncate_dim=self.truncate_dim, **{"convert_to_numpy": True, **options})

    @property
    def description(self) -> str:
        """Return what is evaluated, in words."""
        words, name = "", type(self).__name__.removesuffix("Evaluator")
        for before, letter in zip(" " + name, name, strict=False):
            words += " " + letter if letter.isupper() and before.islower() else letter
        return words

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that change metrics."""
        return {} if self.truncate_dim is None else {"truncate_dim": self.truncate_dim}


SentenceEvaluator = BaseEvaluator  # its name before 5.4


class SequentialEvaluator(BaseEvaluator):
    """Several evaluators, one after the other; the main score is a function of theirs, by default the last."""

    def __init__(self, evaluators: Sequence[BaseEvaluator], main_score_function: Any = None) -> None:
        super().__init__()
        self.evaluators = list(evaluators)
        self.main_score_function = main_score_function or (lambda scores: scores[-1])

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        metrics: dict[str, Any] = {}
        scores = []
        for place, evaluator in enumerate(self.evaluators):
            found = evaluator(model, output_path, epoch, steps)
            if not isinstance(found, dict):
                scores.append(found)
                found = {f"evaluator_{place}": found}
            else:
                main = evaluator.primary_metric
                scores.append(found[main] if main in found else next(iter(found.values())))
            metrics |= found
        return {**metrics, "sequential_score": self.main_score_function(scores)}


def names_of(main: Any, names: list[str] | None) -> list[str]:
    """Return the similarities to measure: those named, or the main one."""
    return list(names or []) or ([] if not main else [SimilarityFunction(main).value])


def shown(show_progress_bar: bool | None) -> bool:
    """Return whether to show progress: by the level of the log, where it is not said."""
    return logger.getEffectiveLevel() <= logging.INFO if show_progress_bar is None else show_progress_bar


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
