"""Measure a re-ranker on retrieval sets: the encoder's best texts ordered by each weight of the re-ranker.

A text longer than an index keeps it counts by its best window, as the passages of a document do in a search.
"""

import json
from pathlib import Path

import numpy as np
import torch

from munjang import BiEncoder, CrossEncoder
from munjang.evaluation.kinds.corpus import Retrieval, read_retrieval
from munjang.evaluation.metrics.bootstrap import draw, interval, mean_of
from munjang.evaluation.metrics.ranking import rank_rows
from munjang.index.rerank import added
from munjang.text.passages import PassageCutter
from munjang.types import Doubles

NUM_CANDIDATES = 50
WEIGHTS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
METRICS = ("ndcg@10", "mrr@10")
WINDOW, OVERLAP = 256, 32  # tokens, as an index cuts documents
Summary = dict[str, dict[str, list[float]]]  # by metric and weight: value, its interval, gain over 0, its interval
Figures = dict[str, dict[str, list[float]]]  # by metric and weight, one for each query


def measure_all(
    model: CrossEncoder, encoder: BiEncoder, folders: list[Path], out: Path | None = None, window: int = WINDOW
) -> None:
    """Print a line for each set, and write the figures of each query."""
    record = {}
    for folder in folders:
        record[folder.name] = found = measure_reranking(model, encoder, read_retrieval(folder), window)
        means = {weight: 100 * float(np.mean(values)) for weight, values in found["ndcg@10"].items()}
        print(f"{folder.name:12} " + "  ".join(f"{weight}: {value:.2f}" for weight, value in means.items()), flush=True)
    if out is not None:
        out.write_text(json.dumps(record) + "\n", encoding="utf-8")
    for weight in map(str, WEIGHTS):
        mean = np.mean([np.mean(found["ndcg@10"][weight]) for found in record.values()])
        print(f"mean at {weight}: {100 * mean:.2f}", flush=True)


def measure_reranking(model: CrossEncoder, encoder: BiEncoder, data: Retrieval, window: int = WINDOW) -> Figures:
    """Return nDCG@10 and MRR@10 of every query by the re-ranker's weight; 0 tokens: texts count whole."""
    documents, queries = list(data.corpus), list(data.queries)
    vectors = [
        torch.from_numpy(encoder.encode([texts[each] for each in ids], normalize=True, progress=False))
        for texts, ids in ((data.corpus, documents), (data.queries, queries))
    ]
    best = (vectors[1] @ vectors[0].T).topk(min(NUM_CANDIDATES, len(documents)), dim=1)
    rows = best.indices.tolist()
    parts = windows(encoder, [data.corpus[documents[at]] for at in sorted({at for row in rows for at in row})], window)
    pairs = [
        (data.queries[query], part)
        for query, row in zip(queries, rows, strict=True)
        for at in row
        for part in parts[data.corpus[documents[at]]]
    ]
    counts = [len(parts[data.corpus[documents[at]]]) for row in rows for at in row]
    scores_P = model.predict(pairs, activation="Identity", progress=False)
    logits = np.maximum.reduceat(scores_P, np.cumsum([0, *counts[:-1]])).reshape(len(queries), -1)
    figures: Figures = {metric: {} for metric in METRICS}
    for weight in WEIGHTS:
        scores = [
            added(one.astype(np.float64), other.astype(np.float64), weight)
            for one, other in zip(logits, best.values.numpy(), strict=True)
        ]
        run = {
            query: {documents[at]: float(value) for at, value in zip(row, values, strict=True)}
            for query, row, values in zip(queries, rows, scores, strict=True)
        }
        by_metric = rank_rows(data.relevances, run, [10], ["ndcg", "mrr"])
        for metric in METRICS:
            figures[metric][str(weight)] = by_metric[metric]
    return figures


def windows(encoder: BiEncoder, texts: list[str], window: int) -> dict[str, list[str]]:
    """Return the passages that an index keeps of each text."""
    if window == 0:
        return {text: [text] for text in texts}
    tokenizer = encoder.tokenizer
    cutter = PassageCutter(window, OVERLAP, count=lambda some: tokenizer.bodies(list(some))[1])
    sizes = tokenizer.bodies(texts)[1]
    return {
        text: [passage.text for passage in cutter.cut(text)] if size > window else [text]
        for text, size in zip(texts, sizes.tolist(), strict=True)
    }


def summary(figures: Figures) -> Summary:
    """Return points with their 95 % intervals over queries, and what each weight gains over the encoder alone."""
    found: Summary = {}
    for metric, by_weight in figures.items():
        alone = np.array(by_weight["0.0"])
        found[metric] = {
            weight: [*_with_interval(np.array(values)), *_with_interval(np.array(values) - alone)]
            for weight, values in by_weight.items()
        }
    return found


def _with_interval(values: Doubles) -> list[float]:
    low, high = interval(draw(mean_of(values))) or (float("nan"), float("nan"))
    return [round(100 * each, 2) for each in (float(values.mean()), low, high)]
