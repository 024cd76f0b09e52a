"""Applications of sentence vectors, each a function of texts or of ready vectors, loaded on first use.

>>> from munjang import BiEncoder
>>> from munjang.tasks import keywords
>>> keywords(["Supervised learning learns from labelled examples."], BiEncoder.load())[0][0].text
'learning'
"""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "Classifier": "munjang.tasks.labels.classifier",
    "ClassifyConfig": "munjang.tasks.labels.config",
    "ClusterConfig": "munjang.tasks.clusters.config",
    "Items": "munjang.tasks.items.catalogue",
    "KeywordConfig": "munjang.tasks.phrases.config",
    "RecommendConfig": "munjang.tasks.items.config",
    "TopicConfig": "munjang.tasks.topics.config",
    "bitext": "munjang.tasks.pairs.bitext",
    "cluster": "munjang.tasks.clusters.clustering",
    "communities": "munjang.tasks.clusters.communities",
    "dedupe": "munjang.tasks.duplicates.dedupe",
    "diversify_terms": "munjang.tasks.topics.changes",
    "explain": "munjang.tasks.items.recommend",
    "find_topics": "munjang.tasks.topics.find",
    "groups_of": "munjang.tasks.clusters.groups",
    "keywords": "munjang.tasks.phrases.keywords",
    "load_topics": "munjang.tasks.topics.files",
    "merge_topics": "munjang.tasks.topics.changes",
    "paraphrases": "munjang.tasks.pairs.paraphrases",
    "reassign_outliers": "munjang.tasks.topics.changes",
    "recommend": "munjang.tasks.items.recommend",
    "reduce_topics": "munjang.tasks.topics.changes",
    "save_topics": "munjang.tasks.topics.files",
    "similar": "munjang.tasks.items.recommend",
    "topics_over_time": "munjang.tasks.topics.times",
    "unit_vectors": "munjang.tasks.vectors",
    "write_map": "munjang.tasks.topics.map",
    "zero_shot": "munjang.tasks.labels.zero_shot",
}

if TYPE_CHECKING:
    from munjang.tasks.clusters.clustering import cluster as cluster
    from munjang.tasks.clusters.communities import communities as communities
    from munjang.tasks.clusters.config import ClusterConfig as ClusterConfig
    from munjang.tasks.clusters.groups import groups_of as groups_of
    from munjang.tasks.duplicates.dedupe import dedupe as dedupe
    from munjang.tasks.items.catalogue import Items as Items
    from munjang.tasks.items.config import RecommendConfig as RecommendConfig
    from munjang.tasks.items.recommend import explain as explain
    from munjang.tasks.items.recommend import recommend as recommend
    from munjang.tasks.items.recommend import similar as similar
    from munjang.tasks.labels.classifier import Classifier as Classifier
    from munjang.tasks.labels.config import ClassifyConfig as ClassifyConfig
    from munjang.tasks.labels.zero_shot import zero_shot as zero_shot
    from munjang.tasks.pairs.bitext import bitext as bitext
    from munjang.tasks.pairs.paraphrases import paraphrases as paraphrases
    from munjang.tasks.phrases.config import KeywordConfig as KeywordConfig
    from munjang.tasks.phrases.keywords import keywords as keywords
    from munjang.tasks.topics.changes import diversify_terms as diversify_terms
    from munjang.tasks.topics.changes import merge_topics as merge_topics
    from munjang.tasks.topics.changes import reassign_outliers as reassign_outliers
    from munjang.tasks.topics.changes import reduce_topics as reduce_topics
    from munjang.tasks.topics.config import TopicConfig as TopicConfig
    from munjang.tasks.topics.files import load_topics as load_topics
    from munjang.tasks.topics.files import save_topics as save_topics
    from munjang.tasks.topics.find import find_topics as find_topics
    from munjang.tasks.topics.map import write_map as write_map
    from munjang.tasks.topics.times import topics_over_time as topics_over_time
    from munjang.tasks.vectors import unit_vectors as unit_vectors
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__ = loader(__name__, PUBLIC)


def __dir__() -> list[str]:
    return list(PUBLIC)


__all__ = sorted(PUBLIC)  # the table is the only list of names
