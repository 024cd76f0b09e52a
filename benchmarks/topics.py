"""Topics of StackOverflow titles, ours beside BERTopic's with the same vectors: V-measure and coherence.

    python -m venv V; V/bin/pip install -c constraints.txt torch bertopic
    python -m benchmarks.topics --data FOLDER --bertopic V/bin/python [--vectors FILE.npy] [--umap] [--out FILE.json]

FOLDER has clustering/stackoverflow.tsv.xz (text, label). The V-measure takes texts of no topic as a group of their own,
and once more over only those that have one. Coherence is NPMI over the titles (tasks/topics/coherence.py) of the first
ten terms of each topic, cut by the same words for both sides. Ours runs in turns with nothing: read the CPU seconds.
"""

import argparse
import json
import subprocess
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.models import add_model, fill_model
from munjang import BiEncoder
from munjang.data.tables import read_texts
from munjang.engine.measure import processor
from munjang.evaluation.metrics.clustering import agreement
from munjang.tasks.topics.coherence import coherence
from munjang.tasks.topics.find import TopicConfig, find_topics

ROOT = Path(__file__).parents[1]
FILE = "clustering/stackoverflow.tsv.xz"
PEER = ROOT / "benchmarks/peers/bertopic_topics.py"


def ours(texts: list[str], vectors: Any, num_topics: int, has_umap: bool) -> dict[str, dict[str, Any]]:
    """Our sides, as the peer's script writes its own."""
    core = {
        "munjang, defaults": TopicConfig(),
        f"munjang, num_topics={num_topics}": TopicConfig(num_topics=num_topics),
    }
    umap = {
        f"munjang, umap, num_topics={num_topics}": TopicConfig(num_topics=num_topics, reduce="umap"),
        "munjang, umap, hdbscan": TopicConfig(reduce="umap", cluster="hdbscan"),
    }
    sides = {}
    for name, config in (core | umap if has_umap else core).items():
        start, cpu = time.perf_counter(), time.process_time()
        found = find_topics(texts, config=config, vectors=vectors)
        sides[name] = {
            "topics": found.topic_of_N.tolist(),
            "terms": [[term for term, _ in topic.terms] for topic in found.topics],
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
        }
    return sides


def scored(side: dict[str, Any], texts: list[str], labels: list[str]) -> dict[str, float]:
    """Return the figures of one side."""
    topics, classes = np.array(side["topics"]), np.array(labels)
    is_in = topics >= 0
    return {
        "topics": len(side["terms"]),
        "outliers": int((~is_in).sum()),
        "v_measure": round(agreement(classes, topics).v_measure, 4),
        "v_measure_without_outliers": round(agreement(classes[is_in], topics[is_in]).v_measure, 4),
        "npmi": round(coherence(side["terms"], texts), 4),
        "cpu_seconds": round(side["cpu_seconds"], 1),
        "seconds": round(side["seconds"], 1),
    }


def theirs(python: Path, texts: list[str], vectors: Any, num_topics: int) -> dict[str, Any]:
    """Run BERTopic in its own venv."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        np.save(place / "vectors.npy", vectors)
        files = [str(place / name) for name in ("texts.json", "vectors.npy", "out.json")]
        subprocess.run([str(python), str(PEER), *files, "--num-topics", str(num_topics)], check=True)
        record: dict[str, Any] = json.loads((place / "out.json").read_text(encoding="utf-8"))
        return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model(parser)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bertopic", type=Path, help="Python of a venv with bertopic")
    parser.add_argument("--record", type=Path, help="a record that the peer's script has written already")
    parser.add_argument("--umap", action="store_true", help="ours with UMAP too (needs umap-learn)")
    parser.add_argument("--vectors", type=Path, help="ready vectors of the titles")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    fill_model(options)
    texts = list(read_texts(options.data / FILE, column="text"))
    labels = list(read_texts(options.data / FILE, column="label"))
    vectors = np.load(options.vectors) if options.vectors else BiEncoder.load(options.model).encode(texts)
    num_topics = len(set(labels))
    sides, versions = ours(texts, vectors, num_topics, options.umap), {}
    if options.bertopic or options.record:
        peer = (
            json.loads(options.record.read_text())
            if options.record
            else theirs(options.bertopic, texts, vectors, num_topics)
        )
        sides, versions = {**sides, **peer["sides"]}, peer["versions"]
    results = {name: scored(side, texts, labels) for name, side in sides.items()}
    for name, result in results.items():
        print(f"{name:70} {result}")
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": FILE,
        "texts": len(texts),
        "model": options.name,
        "machine": processor(),
        "versions": versions,
        "results": results,
        "terms": {name: [terms[:5] for terms in side["terms"][:20]] for name, side in sides.items()},
    }
    if options.out:
        options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
