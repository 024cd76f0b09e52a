"""Evaluators of cross-encoders by the names of sentence-transformers before 4.0."""

from collections.abc import Sequence
from typing import Any, Self

from munjang.compat.evaluation.cross import (
    CrossEncoderClassificationEvaluator,
    CrossEncoderCorrelationEvaluator,
    CrossEncoderRerankingEvaluator,
)


class CEBinaryAccuracyEvaluator(CrossEncoderClassificationEvaluator):
    """CrossEncoderClassificationEvaluator."""

    @classmethod
    def from_input_examples(cls, examples: Sequence[Any], **kwargs: Any) -> Self:
        """Take the pairs and labels of InputExamples."""
        return cls([example.texts for example in examples], [example.label for example in examples], **kwargs)


class CEBinaryClassificationEvaluator(CEBinaryAccuracyEvaluator):
    """CrossEncoderClassificationEvaluator."""


class CEF1Evaluator(CEBinaryAccuracyEvaluator):
    """CrossEncoderClassificationEvaluator."""


class CESoftmaxAccuracyEvaluator(CEBinaryAccuracyEvaluator):
    """CrossEncoderClassificationEvaluator."""


class CECorrelationEvaluator(CrossEncoderCorrelationEvaluator):
    """CrossEncoderCorrelationEvaluator."""


class CERerankingEvaluator(CrossEncoderRerankingEvaluator):
    """CrossEncoderRerankingEvaluator."""
