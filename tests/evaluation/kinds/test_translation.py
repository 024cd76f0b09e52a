"""Translation: the other side has to be the nearest, in both directions."""

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.data.examples import Examples
from munjang.evaluation import evaluate
from tests.texts import ENGLISH, KOREAN


def test_as_naive(model: BiEncoder) -> None:
    report = evaluate(model, Examples("pairs", (ENGLISH[:8], KOREAN[:8]), ("en", "ko")))
    a, b = model.encode(ENGLISH[:8]), model.encode(KOREAN[:8])
    scores = a @ b.T  # the tiny model's vectors have length 1
    forth, back = np.mean(scores.argmax(1) == np.arange(8)), np.mean(scores.argmax(0) == np.arange(8))
    assert report.kind == "translation"
    assert report.metrics == {"accuracy": (forth + back) / 2, "accuracy_1_to_2": forth, "accuracy_2_to_1": back}


def test_equal_texts_are_as_good_as_the_row_itself(model: BiEncoder) -> None:
    texts = [ENGLISH[0], ENGLISH[1], ENGLISH[0]]
    assert evaluate(model, Examples("same", (texts, texts)), "translation").score == pytest.approx(1)
