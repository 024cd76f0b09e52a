"""What the re-ranker's share in the final order gives: each pair is scored once, then added to the retrieval."""

import json
from pathlib import Path

import numpy as np

from munjang import BiEncoder, CrossEncoder
from munjang.evaluation.kinds.base import Settings
from munjang.evaluation.kinds.corpus import read_retrieval
from munjang.evaluation.kinds.retrieval import search
from munjang.evaluation.metrics.ranking import rank_metrics
from munjang.index.rerank import added

SHARES = (0.0, 0.3, 0.5, 0.7, 1.0)
CANDIDATES = 30


def shares(model: Path, first: Path, data: Path, out: Path, device: str | None, rows: int | None) -> None:
    """KorQuAD and Cranfield by share; `rows`: only so many questions of each."""
    finder, cross = BiEncoder.load(first, device), CrossEncoder.load(model, device)
    found: dict[str, dict[str, float]] = {}
    for name in ("korquad", "cranfield"):
        retrieval = read_retrieval(data / "retrieval" / name, "test", rows)
        run = search(finder, retrieval, CANDIDATES, Settings())
        pairs = [(query, document) for query, documents in run.items() for document in documents]
        texts = [(retrieval.queries[query], retrieval.corpus[document]) for query, document in pairs]
        logits = dict(zip(pairs, cross.predict(texts, activation="Identity", progress=True).tolist(), strict=True))
        for share in SHARES:
            mixed = {query: _scores(query, documents, logits, share) for query, documents in run.items()}
            metrics = rank_metrics(retrieval.relevances, mixed, [10], ["mrr", "ndcg"])
            found[f"{name} {share}"] = {metric: round(100 * value, 2) for metric, value in metrics.items()}
            print(name, share, found[f"{name} {share}"], flush=True)
    out.write_text(json.dumps(found, indent=1))


def _scores(
    query: str, documents: dict[str, float], logits: dict[tuple[str, str], float], share: float
) -> dict[str, float]:
    """By id, as an index would add them."""
    own = np.array([logits[query, document] for document in documents])
    both = added(own, np.array(list(documents.values())), share)
    return dict(zip(documents, both.tolist(), strict=True))
