"""Topics of a pile of texts: found, named, changed, followed over time, drawn."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "TopicConfig": "munjang.tasks.topics.config",
    "diversify_terms": "munjang.tasks.topics.changes",
    "find_topics": "munjang.tasks.topics.find",
    "load_topics": "munjang.tasks.topics.files",
    "merge_topics": "munjang.tasks.topics.changes",
    "reassign_outliers": "munjang.tasks.topics.changes",
    "reduce_topics": "munjang.tasks.topics.changes",
    "save_topics": "munjang.tasks.topics.files",
    "topics_over_time": "munjang.tasks.topics.times",
    "write_map": "munjang.tasks.topics.map",
}

if TYPE_CHECKING:
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
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)


__all__ = sorted(PUBLIC)
