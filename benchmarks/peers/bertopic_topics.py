"""BERTopic's topics of texts with ready vectors, for benchmarks.topics; runs in a venv of BERTopic's own.

python benchmarks/peers/bertopic_topics.py TEXTS.json VECTORS.npy OUT.json [--num-topics 20]
"""

import argparse
import json
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0
PACKAGES = ("bertopic", "umap-learn", "hdbscan", "scikit-learn", "numpy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("vectors", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--num-topics", type=int, required=True)
    options = parser.parse_args()
    texts = json.loads(options.texts.read_text(encoding="utf-8"))
    vectors = np.load(options.vectors)
    sides = {}
    for name, make in makers(options.num_topics).items():
        start, cpu = time.perf_counter(), time.process_time()
        model, topics = make(texts, vectors)
        found = sorted(set(topics) - {-1})
        sides[name] = {
            "topics": [int(topic) for topic in topics],
            "terms": [[term for term, _ in model.get_topic(topic) if term] for topic in found],
            "seconds": time.perf_counter() - start,
            "cpu_seconds": time.process_time() - cpu,
        }
        print(f"{name}: {len(found)} topics, {sum(topic == -1 for topic in topics)} outliers", flush=True)
    record = {"versions": {name: version(name) for name in PACKAGES}, "sides": sides}
    options.output.write_text(json.dumps(record), encoding="utf-8")


def makers(num_topics: int) -> dict[str, Any]:
    """Its defaults, with as many topics as there are classes, and with k-means; UMAP with a seed in all of them."""
    from bertopic import BERTopic
    from sklearn.cluster import KMeans
    from sklearn.feature_extraction.text import CountVectorizer
    from umap import UMAP

    def made(is_reassigned: bool = False, **settings: Any) -> Any:
        def run(texts: list[str], vectors: Any) -> tuple[Any, list[int]]:
            umap = UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=SEED)
            model = BERTopic(umap_model=umap, **settings)
            topics, _ = model.fit_transform(texts, vectors)
            if is_reassigned:
                topics = model.reduce_outliers(texts, topics, strategy="embeddings", embeddings=vectors)
                model.update_topics(texts, topics=topics, vectorizer_model=settings.get("vectorizer_model"))
            return model, list(topics)

        return run

    english = CountVectorizer(stop_words="english")
    kmeans = KMeans(num_topics, random_state=SEED, n_init=10)
    return {
        "BERTopic, defaults": made(),
        f"BERTopic, nr_topics={num_topics}, stop words, outliers reassigned": made(
            True, nr_topics=num_topics + 1, vectorizer_model=english
        ),
        f"BERTopic, k-means {num_topics}, stop words": made(hdbscan_model=kmeans, vectorizer_model=english),
    }


if __name__ == "__main__":
    main()
