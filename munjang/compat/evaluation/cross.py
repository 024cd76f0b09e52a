"""Evaluators of cross-encoders."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from munjang.compat.evaluation.base import BaseEvaluator, shown
from munjang.compat.evaluation.binary import metrics_of
from munjang.compat.evaluation.ranked import list_metrics
from munjang.evaluation.metrics.classification import f1, macro_f1
from munjang.evaluation.metrics.correlation import pearson, spearman


class PairEvaluator(BaseEvaluator):
    """The base of evaluators over pairs."""

    def __init__(
        self,
        sentence_pairs: Sequence[Sequence[str]],
        name: str,
        prompt_name: str | None,
        batch_size: int,
        show_progress_bar: bool | None,
        write_csv: bool,
    ) -> None:
        super().__init__()
        self.sentence_pairs, self.name, self.prompt_name = sentence_pairs, name, prompt_name
        self.batch_size, self.show_progress_bar, self.write_csv = batch_size, shown(show_progress_bar), write_csv
        kind = next(base.__name__ for base in type(self).__mro__ if base.__name__.startswith("CrossEncoder"))
        self.csv_file = f"{kind}{'_' + name if name else ''}_results.csv"

    def predict(self, model: Any, pairs: Any) -> Any:
        """Return the scores of pairs."""
        options = {"batch_size": self.batch_size, "show_progress_bar": self.show_progress_bar}
        return model.predict(pairs, prompt_name=self.prompt_name, convert_to_numpy=True, **options)


class CrossEncoderClassificationEvaluator(PairEvaluator):
    """Labels of pairs: thresholds for one output, F1 for several."""

    def __init__(
        self,
        sentence_pairs: Sequence[Sequence[str]],
        labels: Sequence[int],
        *,
        name: str = "",
        prompt_name: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        write_csv: bool = True,
    ) -> None:
        if len(sentence_pairs) != len(labels):
            raise ValueError("sentence_pairs and labels must have the same length")
        super().__init__(sentence_pairs, name, prompt_name, batch_size, show_progress_bar, write_csv)
        self.labels = np.asarray(labels)

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        scores = self.predict(model, self.sentence_pairs)
        if model.num_labels == 1:
            names: tuple[str, ...] = (
                "Accuracy",
                "Accuracy_Threshold",
                "F1",
                "F1_Threshold",
                "Precision",
                "Recall",
                "Average_Precision",
            )
            found = metrics_of(scores, self.labels)
            metrics = {name.lower(): found["ap" if name == names[-1] else name.lower()] for name in names}
            self.primary_metric = "average_precision"
        else:
            names = ("Macro_F1", "Micro_F1", "Weighted_F1")
            said = np.argmax(scores, axis=1)
            classes, counts = np.unique(self.labels, return_counts=True)
            weighted = sum(f1(said, self.labels, each) * count for each, count in zip(classes, counts, strict=True))
            metrics = {
                "f1_macro": macro_f1(said, self.labels),
                "f1_micro": float((said == self.labels).mean()),
                "f1_weighted": weighted / len(self.labels),
            }
            self.primary_metric = "f1_macro"
        self.csv_headers = ["epoch", "steps", *names]
        self.write_row(output_path, [epoch, steps, *metrics.values()])
        return self.finished(model, metrics, epoch, steps)


class CrossEncoderCorrelationEvaluator(PairEvaluator):
    """Correlation of scores with the data's."""

    primary_metric = "spearman"

    def __init__(
        self,
        sentence_pairs: Sequence[Sequence[str]],
        scores: Sequence[float],
        name: str = "",
        prompt_name: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        write_csv: bool = True,
    ) -> None:
        super().__init__(sentence_pairs, name, prompt_name, batch_size, show_progress_bar, write_csv)
        self.scores = scores
        self.csv_headers += ["Pearson_Correlation", "Spearman_Correlation"]

    @classmethod
    def from_input_examples(cls, examples: Sequence[Any], **kwargs: Any) -> "CrossEncoderCorrelationEvaluator":
        """Take the pairs of InputExamples."""
        return cls([example.texts for example in examples], [example.label for example in examples], **kwargs)

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        found = np.asarray(self.predict(model, self.sentence_pairs), np.float64)
        metrics = {"pearson": pearson(self.scores, found), "spearman": spearman(self.scores, found)}
        self.write_row(output_path, [epoch, steps, *metrics.values()])
        return self.finished(model, metrics, epoch, steps)


class CrossEncoderRerankingEvaluator(PairEvaluator):
    """Order of each query's documents, beside the order in which they come."""

    def __init__(
        self,
        samples: Any,
        at_k: int = 10,
        always_rerank_positives: bool = True,
        name: str = "",
        prompt_name: str | None = None,
        batch_size: int = 64,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        mrr_at_k: int | None = None,
    ) -> None:
        super().__init__([], name, prompt_name, batch_size, show_progress_bar, write_csv)
        self.samples = list(samples.values()) if isinstance(samples, dict) else samples
        self.at_k, self.always_rerank_positives = at_k if mrr_at_k is None else mrr_at_k, always_rerank_positives
        self.csv_file = f"CrossEncoderRerankingEvaluator{'_' + name if name else ''}_results_@{self.at_k}.csv"
        self.csv_headers += ["MAP", f"MRR@{self.at_k}", f"NDCG@{self.at_k}"]
        self.primary_metric = f"ndcg@{self.at_k}"

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        lists, before = [], []
        for row in self.samples:
            query, positive, documents = _checked(row)
            if documents is None:
                lists.append((query, positive + row["negative"], [1] * len(positive) + [0] * len(row["negative"])))
                continue
            own = [int(text in positive) for text in documents]
            whole = own + [1] * (len(positive) - sum(own))
            before.append(list_metrics(whole, range(len(whole), 0, -1), self.at_k) if sum(own) else (0, 0, 0))
            if self.always_rerank_positives:
                rest = [text for text in documents if text not in positive]
                lists.append((query, positive + rest, [1] * len(positive) + [0] * len(rest)))
            else:
                lists.append((query, documents, own))
        pairs = [(query, text) for query, texts, is_relevant in lists if any(is_relevant) for text in texts]
        scores = list(self.predict(model, pairs)) if pairs else []
        rows = []
        for _, texts, is_relevant in lists:
            if not any(is_relevant):
                rows.append((0.0, 0.0, 0.0))
                continue
            rows.append(list_metrics(is_relevant, scores[: len(texts)], self.at_k))
            del scores[: len(texts)]
        mrr, ndcg, ap = np.mean(rows, axis=0).tolist()
        self.write_row(output_path, [epoch, steps, ap, mrr, ndcg])
        metrics = {"map": ap, f"mrr@{self.at_k}": mrr, f"ndcg@{self.at_k}": ndcg}
        if before:
            mrr, ndcg, ap = np.mean(before, axis=0).tolist()
            metrics |= {"base_map": ap, f"base_mrr@{self.at_k}": mrr, f"base_ndcg@{self.at_k}": ndcg}
        return self.finished(model, metrics, epoch, steps)

    def get_config_dict(self) -> dict[str, Any]:
        has_documents = bool(self.samples) and "documents" in self.samples[0]
        more = {"always_rerank_positives": self.always_rerank_positives} if has_documents else {}
        return {"at_k": self.at_k, **more}


def _checked(row: dict[str, Any]) -> tuple[str, list[str], list[str] | None]:
    for key in ("query", "positive"):
        if key not in row:
            raise ValueError(f"CrossEncoderRerankingEvaluator requires a '{key}' key in each sample.")
    if ("negative" in row) == ("documents" in row):
        raise ValueError(
            "CrossEncoderRerankingEvaluator requires exactly one of 'negative' and 'documents' in each sample."
        )
    positive = [row["positive"]] if isinstance(row["positive"], str) else list(row["positive"])
    return row["query"], positive, list(row["documents"]) if "documents" in row else None
