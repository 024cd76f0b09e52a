"""Texts to labels: from many examples, from a few, or from descriptions alone."""

from typing import TYPE_CHECKING

from munjang.lazy import loader

PUBLIC = {
    "Classifier": "munjang.tasks.classify.classifier",
    "ClassifyConfig": "munjang.tasks.classify.config",
    "zero_shot": "munjang.tasks.classify.zero_shot_classifiers",
}

if TYPE_CHECKING:
    from munjang.tasks.classify.classifier import Classifier as Classifier
    from munjang.tasks.classify.config import ClassifyConfig as ClassifyConfig
    from munjang.tasks.classify.zero_shot_classifiers import zero_shot as zero_shot
else:  # hidden from type checkers, which would take any misspelt name for a public one
    __getattr__, __dir__ = loader(__name__, PUBLIC)


__all__ = sorted(PUBLIC)
