"""Evaluators under their names, over our metrics: the same numbers, and the same CSV files."""

from typing import TYPE_CHECKING

from munjang.compat.evaluation.base import BaseEvaluator, SentenceEvaluator, SequentialEvaluator
from munjang.compat.evaluation.binary import BinaryClassificationEvaluator
from munjang.compat.evaluation.cross import (
    CrossEncoderClassificationEvaluator,
    CrossEncoderCorrelationEvaluator,
    CrossEncoderRerankingEvaluator,
)
from munjang.compat.evaluation.nano import CrossEncoderNanoBEIREvaluator, NanoBEIREvaluator
from munjang.compat.evaluation.older import (
    CEBinaryAccuracyEvaluator,
    CEBinaryClassificationEvaluator,
    CECorrelationEvaluator,
    CEF1Evaluator,
    CERerankingEvaluator,
    CESoftmaxAccuracyEvaluator,
)
from munjang.compat.evaluation.pairs import (
    EmbeddingSimilarityEvaluator,
    LabelAccuracyEvaluator,
    MSEEvaluator,
    TranslationEvaluator,
    TripletEvaluator,
)
from munjang.compat.evaluation.ranked import (
    InformationRetrievalEvaluator,
    ParaphraseMiningEvaluator,
    RerankingEvaluator,
)
from munjang.compat.gaps import missing_name
from munjang.compat.similarity_functions import SimilarityFunction

__all__ = [
    "BaseEvaluator",
    "BinaryClassificationEvaluator",
    "CEBinaryAccuracyEvaluator",
    "CEBinaryClassificationEvaluator",
    "CECorrelationEvaluator",
    "CEF1Evaluator",
    "CERerankingEvaluator",
    "CESoftmaxAccuracyEvaluator",
    "CrossEncoderClassificationEvaluator",
    "CrossEncoderCorrelationEvaluator",
    "CrossEncoderNanoBEIREvaluator",
    "CrossEncoderRerankingEvaluator",
    "EmbeddingSimilarityEvaluator",
    "InformationRetrievalEvaluator",
    "LabelAccuracyEvaluator",
    "MSEEvaluator",
    "NanoBEIREvaluator",
    "ParaphraseMiningEvaluator",
    "RerankingEvaluator",
    "SentenceEvaluator",
    "SequentialEvaluator",
    "SimilarityFunction",
    "TranslationEvaluator",
    "TripletEvaluator",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        raise missing_name("munjang.compat.evaluation", name)
