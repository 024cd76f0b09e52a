"""What a model's prompts are worth: retrieval with and without them.

    python -m benchmarks.prompts MODEL CORPUS.tsv QUERIES.tsv QRELS.tsv [--queries 1000] [--out FILE.json]

For models such as multilingual-e5, whose folder often names no prompts: they are set here as `model.prompts` and used
by `encode_query` and `encode_document`. The first column is the id, the last the text; qrels: query, document.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from munjang import BiEncoder
from munjang.data.files import read_lines

PROMPTS = {"query": "query: ", "passage": "passage: "}


def rows(path: Path) -> list[list[str]]:
    """Id and text of every row of a TSV file."""
    table = [line.split("\t") for number, line in read_lines(path) if number > 1]
    return [[row[0], row[-1]] for row in table]


def scores(
    model: BiEncoder, corpus: list[list[str]], queries: list[list[str]], right: dict[str, set[str]]
) -> dict[str, float]:
    """Recall@1, recall@10 and MRR@10."""
    documents = model.encode_document([text for _, text in corpus])
    found = model.similarity(model.encode_query([text for _, text in queries]), documents)
    top = np.argsort(-found, axis=1)[:, :10]
    ranks = []
    for (query, _), best in zip(queries, top, strict=True):
        places = [place for place, at in enumerate(best) if corpus[at][0] in right[query]]
        ranks.append(places[0] + 1 if places else 0)
    hits = np.array(ranks)
    return {
        "recall@1": round(float((hits == 1).mean()), 4),
        "recall@10": round(float((hits > 0).mean()), 4),
        "mrr@10": round(float(np.where(hits > 0, 1 / np.maximum(hits, 1), 0).mean()), 4),
    }


def main() -> None:
    """Measure both ways, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name in ("model", "corpus", "queries_file", "qrels"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--queries", type=int, default=1000, help="how many questions, taken evenly over the file")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    corpus, queries = rows(options.corpus), rows(options.queries_file)
    queries = queries[:: max(len(queries) // options.queries, 1)][: options.queries]
    right: dict[str, set[str]] = {}
    for number, line in read_lines(options.qrels):
        if number > 1:
            query, document, *_ = line.split("\t")
            right.setdefault(query, set()).add(document)
    model = BiEncoder.load(options.model)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": options.model.name,
        "queries": len(queries),
    }
    record |= {"documents": len(corpus), "corpus": options.corpus.parent.name}
    for name, prompts in (("without", {}), ("with", PROMPTS)):
        model.prompts = dict(prompts)
        record[name] = scores(model, corpus, queries, right)
        print(f"{name} prompts: {record[name]}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
