"""Recommendations: items like this one, or for what somebody likes."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "Items": "munjang.tasks.recommend.catalogue",
    "RecommendConfig": "munjang.tasks.recommend.config",
    "explain": "munjang.tasks.recommend.ranking",
    "recommend": "munjang.tasks.recommend.ranking",
    "similar": "munjang.tasks.recommend.ranking",
}

if TYPE_CHECKING:
    from munjang.tasks.recommend.catalogue import Items as Items
    from munjang.tasks.recommend.config import RecommendConfig as RecommendConfig
    from munjang.tasks.recommend.ranking import explain as explain
    from munjang.tasks.recommend.ranking import recommend as recommend
    from munjang.tasks.recommend.ranking import similar as similar
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)


__all__ = sorted(PUBLIC)
