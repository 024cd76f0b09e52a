"""munjang cluster INPUT... -o OUT: cluster texts; each cluster has keywords and its most typical texts.

munjang cluster questions.csv -o clusters.csv
munjang cluster questions.csv -o clusters.csv --summary summary.jsonl --html clusters.html
munjang cluster news.txt -o clusters.csv --method kmeans --num-clusters 20
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from munjang.cli import corpus
from munjang.cli.options import option
from munjang.errors import InputError
from munjang.tasks.cluster.config import ClusterConfig

if TYPE_CHECKING:
    from munjang.tasks.cluster.groups import Group

MAX_PRINTED_CLUSTERS = 5
SUMMARY_KO = "글을 군집으로 묶고 군집마다 핵심어 달기"


@dataclass(frozen=True, kw_only=True)
class Options(corpus.CorpusOptions, ClusterConfig):
    """Options of `munjang cluster`."""

    summary: str | None = option("write a row for each cluster: .csv, .tsv, .jsonl or .parquet", default=None)
    num_keywords: int = option("keywords per cluster", default=8)


def run(options: Options) -> int:
    """Read, encode, cluster, describe, write."""
    corpus.check_outputs(options, options.output, options.summary)
    if options.num_keywords < 1:
        raise InputError(f"--num-keywords must be at least 1, not {options.num_keywords}")
    texts = corpus.read_corpus(options, options.inputs)
    from munjang.data.writing import check_texts, write_table
    from munjang.tasks.cluster.clustering import cluster
    from munjang.tasks.cluster.groups import groups_of

    check_texts(Path(options.output), texts)
    config = ClusterConfig(**{each.name: getattr(options, each.name) for each in fields(ClusterConfig)})
    vectors = corpus.corpus_vectors(options, texts, options.vectors, corpus.load_model(options))
    # k-means and HDBSCAN report no progress
    corpus.say(options, f"clustering {len(texts):,} texts by {config.method}")
    found = cluster(vectors, config=config, device=options.device, progress=not options.quiet)
    groups = groups_of(found, vectors, texts, num_keywords=options.num_keywords, progress=not options.quiet)
    write_table(
        Path(options.output), {"row": list(range(len(texts))), "cluster": found.labels_N.tolist(), "text": texts}
    )
    if options.summary is not None:
        write_table(Path(options.summary), _summary(groups, texts))
    if options.html is not None:
        from munjang.tasks.cluster.page import clusters_page

        corpus.write_page(options.html, clusters_page(found, groups, vectors, texts))
    num_left = int((found.labels_N < 0).sum())
    corpus.say(
        options, f"{found.num_clusters:,} clusters, {num_left:,} of {len(texts):,} texts in none, in {options.output}"
    )
    for group in groups[:MAX_PRINTED_CLUSTERS]:
        corpus.say(options, f"  {group.size:,}: {', '.join(group.keywords) or texts[group.representatives[0]]:.100}")
    return 0


def _summary(groups: "list[Group]", texts: list[str]) -> dict[str, Sequence[object]]:
    return {
        "cluster": [group.label for group in groups],
        "size": [group.size for group in groups],
        "keywords": [", ".join(group.keywords) for group in groups],
        "representative": [texts[group.representatives[0]] for group in groups],
    }
