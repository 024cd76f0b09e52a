"""NanoBEIR under their names: thirteen small search tasks, read with `datasets` (extra), and means of their metrics."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from munjang.compat.evaluation.base import BaseEvaluator
from munjang.compat.evaluation.cross import CrossEncoderRerankingEvaluator
from munjang.compat.evaluation.ranked import InformationRetrievalEvaluator
from munjang.errors import MissingExtra

NAMES = {
    "climatefever": "ClimateFEVER",
    "dbpedia": "DBPedia",
    "fever": "FEVER",
    "fiqa2018": "FiQA2018",
    "hotpotqa": "HotpotQA",
    "msmarco": "MSMARCO",
    "nfcorpus": "NFCorpus",
    "nq": "NQ",
    "quoraretrieval": "QuoraRetrieval",
    "scidocs": "SCIDOCS",
    "arguana": "ArguAna",
    "scifact": "SciFact",
    "touche2020": "Touche2020",
}
NO_RERANKING = ("arguana", "touche2020")  # where theirs is not measured by default


class NanoEvaluator(BaseEvaluator):
    """The base of both evaluators: the datasets, an evaluator for each, and the mean."""

    dataset_names: list[str]
    dataset_id: str
    aggregate_fn: Callable[[list[float]], float]
    evaluators: list[Any]

    def check_names(self) -> None:
        """Refuse datasets that there are not."""
        if not self.dataset_names:
            raise ValueError("dataset_names cannot be empty. Use None to evaluate on all datasets.")
        if missing := [name for name in self.dataset_names if name.lower() not in NAMES]:
            raise ValueError(
                f"Dataset(s) {missing} are not valid NanoBEIR datasets. Valid dataset names are: {list(NAMES)}"
            )

    def rows(self, subset: str, name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Read a part of a dataset."""
        try:
            import datasets
        except ImportError as error:
            raise MissingExtra("datasets", "datasets", type(self).__name__) from error
        split = f"Nano{NAMES[name.lower()]}"
        try:
            dataset = datasets.load_dataset(self.dataset_id, subset, split=split)
        except Exception as error:
            raise ValueError(
                f"Could not load subset '{subset}' split '{split}' from dataset '{self.dataset_id}'."
            ) from error
        if missing := set(columns) - set(dataset.column_names):
            raise ValueError(
                f"Subset '{subset}' split '{split}' from dataset '{self.dataset_id}' is missing required columns: "
                f"{list(missing)}."
            )
        return list(dataset)

    def texts(self, subset: str, name: str) -> dict[str, str]:
        """Return the texts of a part by their ids, without empty ones."""
        return {row["_id"]: row["text"] for row in self.rows(subset, name, ("_id", "text")) if row["text"]}

    def relevant(self, name: str) -> dict[str, set[str]]:
        """Return the relevant documents of each query."""
        found: dict[str, set[str]] = defaultdict(set)
        for row in self.rows("qrels", name, ("query-id", "corpus-id")):
            ids = row["corpus-id"]
            found[row["query-id"]].update(ids if isinstance(ids, list) else [ids])
        return dict(found)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1, **kwargs: Any
    ) -> Any:
        values: dict[str, list[float]] = defaultdict(list)
        found: dict[str, float] = {}
        for evaluator in self.evaluators:
            for metric, value in evaluator(model, output_path, epoch, steps).items():
                found[metric] = value
                values[metric.removeprefix(f"{evaluator.name}_")].append(value)
        means = {metric: self.aggregate_fn(each) for metric, each in values.items()}
        self.write_row(output_path, [epoch, steps, *self.row(model, means)])
        return {**found, **self.finished(model, means, epoch, steps)}

    def row(self, model: Any, means: dict[str, float]) -> list[float]:
        """Return the row of the CSV file, and set its headers and the primary metric."""
        raise NotImplementedError


class NanoBEIREvaluator(NanoEvaluator):
    """Search in thirteen small corpora."""

    def __init__(
        self,
        dataset_names: list[str] | None = None,
        dataset_id: str = "sentence-transformers/NanoBEIR-en",
        mrr_at_k: Sequence[int] = (10,),
        ndcg_at_k: Sequence[int] = (10,),
        accuracy_at_k: Sequence[int] = (1, 3, 5, 10),
        precision_recall_at_k: Sequence[int] = (1, 3, 5, 10),
        map_at_k: Sequence[int] = (100,),
        show_progress_bar: bool = False,
        batch_size: int = 32,
        write_csv: bool = True,
        truncate_dim: int | None = None,
        score_functions: dict[str, Any] | None = None,
        main_score_function: Any = None,
        aggregate_fn: Callable[[list[float]], float] = np.mean,
        aggregate_key: str = "mean",
        query_prompts: Any = None,
        corpus_prompts: Any = None,
        write_predictions: bool = False,
    ) -> None:
        super().__init__()
        self.dataset_names, self.dataset_id = list(NAMES) if dataset_names is None else dataset_names, dataset_id
        self.check_names()
        self.aggregate_fn, self.aggregate_key, self.write_csv = aggregate_fn, aggregate_key, write_csv
        self.truncate_dim, self.query_prompts, self.corpus_prompts = truncate_dim, query_prompts, corpus_prompts
        suffix = f"_{truncate_dim}" if truncate_dim else ""
        self.name, self.csv_file = (
            f"NanoBEIR_{aggregate_key}{suffix}",
            f"NanoBEIR_evaluation_{aggregate_key}_results.csv",
        )
        options: dict[str, Any] = {
            "mrr_at_k": mrr_at_k,
            "ndcg_at_k": ndcg_at_k,
            "accuracy_at_k": accuracy_at_k,
            "map_at_k": map_at_k,
            "precision_recall_at_k": precision_recall_at_k,
            "show_progress_bar": show_progress_bar,
            "batch_size": batch_size,
            "write_csv": write_csv,
            "truncate_dim": truncate_dim,
            "score_functions": score_functions,
            "main_score_function": main_score_function,
            "write_predictions": write_predictions,
        }
        self.evaluators = [
            InformationRetrievalEvaluator(
                self.texts("queries", name),
                self.texts("corpus", name),
                self.relevant(name),
                name=f"Nano{NAMES[name.lower()]}{suffix}",
                query_prompt=_prompt_of(query_prompts, name, "query"),
                corpus_prompt=_prompt_of(corpus_prompts, name, "corpus"),
                **options,
            )
            for name in self.dataset_names
        ]

    def row(self, model: Any, means: dict[str, float]) -> list[float]:
        first = self.evaluators[0]
        self.csv_headers = first.csv_headers
        if not self.primary_metric:
            self.primary_metric = first.primary_metric.removeprefix(f"{first.name}_")
        return [means[f"{name}_{metric}@{k}"] for name in first.score_function_names for metric, k in first._cuts()]


class CrossEncoderNanoBEIREvaluator(NanoEvaluator):
    """Re-ranking of what BM25 found in eleven small corpora."""

    def __init__(
        self,
        dataset_names: list[str] | None = None,
        dataset_id: str = "sentence-transformers/NanoBEIR-en",
        rerank_k: int = 100,
        at_k: int = 10,
        always_rerank_positives: bool = True,
        prompt_name: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        aggregate_fn: Callable[[list[float]], float] = np.mean,
        aggregate_key: str = "mean",
    ) -> None:
        super().__init__()
        usual = [name for name in NAMES if name not in NO_RERANKING]
        self.dataset_names, self.dataset_id = usual if dataset_names is None else dataset_names, dataset_id
        self.check_names()
        self.rerank_k, self.at_k, self.always_rerank_positives = rerank_k, at_k, always_rerank_positives
        self.aggregate_fn, self.write_csv = aggregate_fn, write_csv
        self.name = f"NanoBEIR_R{rerank_k}_{aggregate_key}"
        self.csv_file = f"NanoBEIR_evaluation_{aggregate_key}_results.csv"
        self.csv_headers += ["MAP", f"MRR@{at_k}", f"NDCG@{at_k}"]
        self.primary_metric = f"ndcg@{at_k}"
        options = (at_k, always_rerank_positives)
        shared: tuple[Any, ...] = (prompt_name, batch_size, show_progress_bar, write_csv)
        self.evaluators = [
            CrossEncoderRerankingEvaluator(
                self.samples(name), *options, f"Nano{NAMES[name.lower()]}_R{rerank_k}", *shared
            )
            for name in self.dataset_names
        ]

    def samples(self, name: str) -> list[dict[str, Any]]:
        """Return the queries of a dataset with their relevant texts and what BM25 found."""
        corpus, queries, relevant = self.texts("corpus", name), self.texts("queries", name), self.relevant(name)
        return [
            {
                "query": queries[row["query-id"]],
                "positive": [corpus[document] for document in relevant[row["query-id"]]],
                "documents": [corpus[document] for document in row["corpus-ids"][: self.rerank_k]],
            }
            for row in self.rows("bm25", name, ("query-id", "corpus-ids"))
        ]

    def row(self, model: Any, means: dict[str, float]) -> list[float]:
        return [means["map"], means[f"mrr@{self.at_k}"], means[f"ndcg@{self.at_k}"]]


def _prompt_of(prompts: Any, name: str, what: str) -> str | None:
    if isinstance(prompts, dict):
        if name not in prompts:
            raise ValueError(f"The following datasets are missing {what} prompts: {[name]}")
        return str(prompts[name])
    return None if prompts is None else str(prompts)
