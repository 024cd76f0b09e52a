"""Evaluators of search, re-ranking and mining."""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from munjang.compat.evaluation.base import BaseEvaluator
from munjang.compat.retrieval import paraphrase_mining
from munjang.compat.similarity_functions import SimilarityFunction, cos_sim
from munjang.evaluation.metrics.classification import average_precision

Hits = list[list[dict[str, Any]]]
COLUMNS = {
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "mrr": "MRR",
    "ndcg": "NDCG",
    "map": "MAP",
}


class InformationRetrievalEvaluator(BaseEvaluator):
    """Search of queries in a corpus, by exact similarity."""

    def __init__(
        self,
        queries: Mapping[str, str],
        corpus: Mapping[str, str],
        relevant_docs: Mapping[str, set[str]],
        corpus_chunk_size: int = 50000,
        mrr_at_k: Sequence[int] = (10,),
        ndcg_at_k: Sequence[int] = (10,),
        accuracy_at_k: Sequence[int] = (1, 3, 5, 10),
        precision_recall_at_k: Sequence[int] = (1, 3, 5, 10),
        map_at_k: Sequence[int] = (100,),
        show_progress_bar: bool = False,
        batch_size: int = 32,
        name: str = "",
        write_csv: bool = True,
        truncate_dim: int | None = None,
        score_functions: dict[str, Callable[..., Any]] | None = None,
        main_score_function: Any = None,
        query_prompt: str | None = None,
        query_prompt_name: str | None = None,
        corpus_prompt: str | None = None,
        corpus_prompt_name: str | None = None,
        write_predictions: bool = False,
    ) -> None:
        super().__init__()
        self.queries_ids = [query for query in queries if relevant_docs.get(query)]
        self.queries = [queries[query] for query in self.queries_ids]
        self.corpus_ids, self.corpus = list(corpus), list(corpus.values())
        self.relevant_docs, self.corpus_chunk_size = relevant_docs, corpus_chunk_size
        self.mrr_at_k, self.ndcg_at_k, self.map_at_k = list(mrr_at_k), list(ndcg_at_k), list(map_at_k)
        self.accuracy_at_k, self.precision_recall_at_k = list(accuracy_at_k), list(precision_recall_at_k)
        self.show_progress_bar, self.batch_size, self.name = show_progress_bar, batch_size, name
        self.write_csv, self.truncate_dim, self.write_predictions = write_csv, truncate_dim, write_predictions
        self.query_prompt, self.query_prompt_name = query_prompt, query_prompt_name
        self.corpus_prompt, self.corpus_prompt_name = corpus_prompt, corpus_prompt_name
        self.score_functions = score_functions
        self.score_function_names = sorted(score_functions or {})
        self.main_score_function = SimilarityFunction(main_score_function) if main_score_function else None
        suffix = f"_{name}" if name else ""
        self.csv_file = f"Information-Retrieval_evaluation{suffix}_results.csv"
        self.predictions_file = f"Information-Retrieval_evaluation{suffix}_predictions.jsonl"
        self._name_columns()

    def _cuts(self) -> list[tuple[str, int]]:
        """Return the metrics in the order of the CSV file's columns."""
        both = [(metric, k) for k in self.precision_recall_at_k for metric in ("precision", "recall")]
        return [
            *(("accuracy", k) for k in self.accuracy_at_k),
            *both,
            *(("mrr", k) for k in self.mrr_at_k),
            *(("ndcg", k) for k in self.ndcg_at_k),
            *(("map", k) for k in self.map_at_k),
        ]

    def _name_columns(self) -> None:
        names = [f"{name}-{COLUMNS[metric]}@{k}" for name in self.score_function_names for metric, k in self._cuts()]
        self.csv_headers = ["epoch", "steps", *names]

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1, **kwargs: Any
    ) -> Any:
        if not self.score_functions:
            self.score_functions = {model.similarity_fn_name: model.similarity}
            self.score_function_names = sorted(self.score_functions)
            self._name_columns()
        scores = self.compute_all_metrics(model, output_path=output_path, **kwargs)
        row = [scores[name][f"{metric}@k"][k] for name in self.score_function_names for metric, k in self._cuts()]
        self.write_row(output_path, [epoch, steps, *row])
        if not self.primary_metric:
            largest = max(self.ndcg_at_k)
            best = max(self.score_function_names, key=lambda name: scores[name]["ndcg@k"][largest])
            main = self.main_score_function.value if self.main_score_function else best
            self.primary_metric = f"{main}_ndcg@{largest}"
        metrics = {
            f"{name}_{metric.replace('@k', f'@{k}')}": value
            for name, by_metric in scores.items()
            for metric, by_k in by_metric.items()
            for k, value in by_k.items()
        }
        return self.finished(model, metrics, epoch, steps)

    def compute_all_metrics(
        self, model: Any, corpus_model: Any = None, corpus_embeddings: Any = None, output_path: str | None = None
    ) -> dict[str, dict[str, dict[int, float]]]:
        """Search, and return the metrics of each similarity."""
        queries = self.embed_inputs(
            model,
            self.queries,
            "query",
            prompt=self.query_prompt,
            prompt_name=self.query_prompt_name,
            convert_to_tensor=True,
        )
        largest = max(k for _, k in self._cuts())
        found: dict[str, list[list[tuple[float, str]]]] = {
            name: [[] for _ in self.queries] for name in self.score_functions or {}
        }
        for start in range(0, len(self.corpus), self.corpus_chunk_size):
            part = slice(start, start + self.corpus_chunk_size)
            if corpus_embeddings is None:
                options = {
                    "prompt": self.corpus_prompt,
                    "prompt_name": self.corpus_prompt_name,
                    "convert_to_tensor": True,
                }
                documents = self.embed_inputs(corpus_model or model, self.corpus[part], "document", **options)
            else:
                documents = corpus_embeddings[part]
            for name, function in (self.score_functions or {}).items():
                rows = function(queries, documents).cpu().tolist()
                for hits, scores in zip(found[name], rows, strict=True):
                    hits += zip(scores, self.corpus_ids[part], strict=True)
                    hits.sort(key=lambda hit: (-hit[0], hit[1]))  # equal scores: in the order of ids
                    del hits[largest:]
        lists = {
            name: [[{"corpus_id": document, "score": score} for score, document in hits] for hits in rows]
            for name, rows in found.items()
        }
        self._write_predictions(output_path, lists)
        return {name: self.compute_metrics(rows) for name, rows in lists.items()}

    compute_metrices = compute_all_metrics

    def _write_predictions(self, folder: str | None, lists: dict[str, Hits]) -> None:
        if folder is None or not self.write_predictions:
            return
        os.makedirs(folder, exist_ok=True)
        for name, rows in lists.items():
            path = Path(folder) / self.predictions_file.replace(".jsonl", f"_{name}.jsonl")
            with path.open("w", encoding="utf-8") as file:
                for query, text, hits in zip(self.queries_ids, self.queries, rows, strict=True):
                    file.write(json.dumps({"query_id": query, "query": text, "results": hits}) + "\n")

    def compute_metrics(self, queries_result_list: Hits) -> dict[str, dict[int, float]]:
        """Return the metrics of the hits of all queries, best first."""
        rows = []
        for query, hits in zip(self.queries_ids, queries_result_list, strict=True):
            ordered = sorted(hits, key=lambda hit: (-hit["score"], hit["corpus_id"]))
            is_hit = np.array([hit["corpus_id"] in self.relevant_docs[query] for hit in ordered], bool)
            rows.append((is_hit, len(self.relevant_docs[query])))
        return {
            f"{metric}@k": {
                k: float(np.mean([MEASURES[metric](is_hit[:k], total, k) for is_hit, total in rows])) for k in cuts
            }
            for metric, cuts in (
                ("accuracy", self.accuracy_at_k),
                ("precision", self.precision_recall_at_k),
                ("recall", self.precision_recall_at_k),
                ("ndcg", self.ndcg_at_k),
                ("mrr", self.mrr_at_k),
                ("map", self.map_at_k),
            )
        }

    @staticmethod
    def compute_dcg_at_k(relevances: Sequence[float], k: int) -> float:
        """Return the discounted gain of the first k."""
        return float(sum(gain / np.log2(place + 2) for place, gain in enumerate(relevances[:k])))

    def get_config_dict(self) -> dict[str, Any]:
        names = ("truncate_dim", "query_prompt", "query_prompt_name", "corpus_prompt", "corpus_prompt_name")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def _ndcg(is_hit: Any, total: int, k: int) -> float:
    discounts = 1 / np.log2(np.arange(max(len(is_hit), min(total, k))) + 2)
    return float((is_hit * discounts[: len(is_hit)]).sum() / discounts[: min(total, k)].sum())


def _map(is_hit: Any, total: int, k: int) -> float:
    places = np.flatnonzero(is_hit)
    return float(((np.arange(len(places)) + 1) / (places + 1)).sum() / min(k, total))


def _mrr(is_hit: Any, total: int, k: int) -> float:
    return float(1 / (np.argmax(is_hit) + 1)) if is_hit.any() else 0.0


MEASURES: dict[str, Callable[[Any, int, int], float]] = {
    "accuracy": lambda is_hit, total, k: float(is_hit.any()),
    "precision": lambda is_hit, total, k: float(is_hit.sum() / k),
    "recall": lambda is_hit, total, k: float(is_hit.sum() / total),
    "ndcg": _ndcg,
    "mrr": _mrr,
    "map": _map,
}


def list_metrics(is_relevant: Sequence[int], scores: Any, k: int) -> tuple[float, float, float]:
    """Return MRR, NDCG and average precision of one list; gains of equal scores are averaged."""
    values, gains = np.asarray(scores, np.float64), np.asarray(is_relevant, np.float64)
    order = np.argsort(-values, kind="stable")
    mrr = _mrr(gains[order][:k] > 0, 0, k)
    discounts = np.where(np.arange(len(gains)) < k, 1 / np.log2(np.arange(len(gains)) + 2), 0)
    _, groups, counts = np.unique(-values, return_inverse=True, return_counts=True)
    means = np.bincount(groups, gains) / counts
    ends = np.cumsum(counts)
    sums = np.cumsum(discounts)[ends - 1]
    gained = (np.diff(sums, prepend=0) * means).sum()
    best = (np.sort(gains)[::-1] * discounts).sum()
    return mrr, float(gained / best) if best else 0.0, average_precision(values, gains > 0)


class RerankingEvaluator(BaseEvaluator):
    """Order of each query's positives and negatives."""

    def __init__(
        self,
        samples: Any,
        at_k: int = 10,
        name: str = "",
        write_csv: bool = True,
        similarity_fct: Callable[..., Any] = cos_sim,
        batch_size: int = 64,
        show_progress_bar: bool = False,
        use_batched_encoding: bool = True,
        truncate_dim: int | None = None,
        mrr_at_k: int | None = None,
    ) -> None:
        super().__init__()
        rows = list(samples.values()) if isinstance(samples, dict) else samples
        listed = [{**row, **{key: _listed(row[key]) for key in ("positive", "negative")}} for row in rows]
        self.samples = [row for row in listed if row["positive"] and row["negative"]]
        self.at_k = at_k if mrr_at_k is None else mrr_at_k
        self.name, self.write_csv, self.similarity_fct, self.batch_size = name, write_csv, similarity_fct, batch_size
        self.show_progress_bar, self.truncate_dim = show_progress_bar, truncate_dim
        self.use_batched_encoding = use_batched_encoding  # the texts of all queries are encoded together either way
        self.csv_file = f"RerankingEvaluator{'_' + name if name else ''}_results_@{self.at_k}.csv"
        self.csv_headers += ["MAP", f"MRR@{self.at_k}", f"NDCG@{self.at_k}"]
        self.primary_metric = f"ndcg@{self.at_k}"

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        scores = self.compute_metrics(model)
        self.write_row(output_path, [epoch, steps, scores["map"], scores["mrr"], scores["ndcg"]])
        metrics = {"map": scores["map"], f"mrr@{self.at_k}": scores["mrr"], f"ndcg@{self.at_k}": scores["ndcg"]}
        return self.finished(model, metrics, epoch, steps)

    def compute_metrics(self, model: Any) -> dict[str, float]:
        """Return the means over all queries."""
        queries = self.embed_inputs(model, [row["query"] for row in self.samples], "query", convert_to_tensor=True)
        texts = [text for row in self.samples for text in (*row["positive"], *row["negative"])]
        documents = self.embed_inputs(model, texts, "document", convert_to_tensor=True)
        rows, start = [], 0
        for query, row in zip(queries, self.samples, strict=True):
            count, num_positive = len(row["positive"]) + len(row["negative"]), len(row["positive"])
            scores = self.similarity_fct(query, documents[start : start + count]).reshape(-1).cpu().numpy()
            rows.append(list_metrics([1] * num_positive + [0] * (count - num_positive), scores, self.at_k))
            start += count
        mrr, ndcg, ap = np.mean(rows, axis=0).tolist()
        return {"map": ap, "mrr": mrr, "ndcg": ndcg}

    compute_metrices = compute_metrics_batched = compute_metrics_individual = compute_metrics

    def get_config_dict(self) -> dict[str, Any]:
        return {"at_k": self.at_k, **super().get_config_dict()}


class ParaphraseMiningEvaluator(BaseEvaluator):
    """Pairs that mean the same, found among all texts."""

    primary_metric = "average_precision"

    def __init__(
        self,
        sentences_map: Mapping[str, str],
        duplicates_list: Sequence[tuple[str, str]] | None = None,
        duplicates_dict: Mapping[str, Mapping[str, bool]] | None = None,
        add_transitive_closure: bool = False,
        query_chunk_size: int = 5000,
        corpus_chunk_size: int = 100000,
        max_pairs: int = 500000,
        top_k: int = 100,
        show_progress_bar: bool = False,
        batch_size: int = 16,
        name: str = "",
        write_csv: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.ids, self.sentences = list(sentences_map), list(sentences_map.values())
        self.name, self.write_csv, self.truncate_dim, self.batch_size = name, write_csv, truncate_dim, batch_size
        self.query_chunk_size, self.corpus_chunk_size = query_chunk_size, corpus_chunk_size
        self.max_pairs, self.top_k, self.show_progress_bar = max_pairs, top_k, show_progress_bar
        self._add_transitive_closure = add_transitive_closure
        graph: dict[str, dict[str, bool]] = defaultdict(lambda: defaultdict(bool))
        named = [(a, b) for a, row in (duplicates_dict or {}).items() for b, is_same in row.items() if is_same]
        for a, b in [*(duplicates_list or []), *named]:
            if a in sentences_map and b in sentences_map:
                graph[a][b] = graph[b][a] = True
        self.duplicates = self.add_transitive_closure(graph) if add_transitive_closure else graph
        pairs = {tuple(sorted((a, b))) for a, row in self.duplicates.items() for b, is_same in row.items() if is_same}
        self.total_num_duplicates = len(pairs)
        self.csv_file = f"paraphrase_mining_evaluation{'_' + name if name else ''}_results.csv"
        self.csv_headers += ["precision", "recall", "f1", "threshold", "average_precision"]

    def __call__(self, model: Any, output_path: str | None = None, epoch: Any = -1, steps: int = -1) -> Any:
        sizes = (self.query_chunk_size, self.corpus_chunk_size, self.max_pairs, self.top_k)
        mined = paraphrase_mining(
            model, self.sentences, bool(self.show_progress_bar), self.batch_size, *sizes, truncate_dim=self.truncate_dim
        )
        found = self._best(mined)
        self.write_row(output_path, [epoch, steps, *(found[name] for name in self.csv_headers[2:])])
        order = ("average_precision", "f1", "precision", "recall", "threshold")
        return self.finished(model, {name: found[name] for name in order}, epoch, steps)

    def _best(self, mined: list[list[float | int]]) -> dict[str, float]:
        total, right, before, summed = self.total_num_duplicates, 0, 0, 0.0
        best = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "threshold": 0.0}
        for place, (score, i, j) in enumerate(mined):
            right += bool(self.duplicates.get(self.ids[int(i)], {}).get(self.ids[int(j)], False))
            following = mined[min(place + 1, len(mined) - 1)][0]
            if place + 1 < len(mined) and following == score:
                continue  # equal scores are one step
            if right > before:
                precision, recall = right / (place + 1), right / total if total else 0.0
                f1 = 2 * precision * recall / (precision + recall)
                summed += precision * (right - before)
                if f1 > best["f1"]:
                    threshold = (score + following) / 2
                    best = {"precision": precision, "recall": recall, "f1": f1, "threshold": threshold}
            before = right
        return {**best, "average_precision": summed / total if total else 0.0}

    @staticmethod
    def add_transitive_closure(graph: dict[str, dict[str, bool]]) -> dict[str, dict[str, bool]]:
        """Add pairs that follow from others."""
        seen: set[str] = set()
        for start in list(graph):
            if start in seen:
                continue
            group, waiting = {start}, [start]
            while waiting:
                near = {b for b, is_same in graph[waiting.pop()].items() if is_same} - group
                group |= near
                waiting += near
            for a in group:
                for b in group - {a}:
                    graph[a][b] = True
            seen |= group
        return graph

    def get_config_dict(self) -> dict[str, Any]:
        found = {"add_transitive_closure": self._add_transitive_closure, "max_pairs": self.max_pairs}
        return {**found, "top_k": self.top_k, **super().get_config_dict()}


def _listed(texts: Any) -> list[str]:
    return [texts] if isinstance(texts, str) else list(texts)
