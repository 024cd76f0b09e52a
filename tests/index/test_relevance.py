"""Relevance: probabilities that agree with how often hits are relevant."""

from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.index import Index
from munjang.index.relevance import Scale

THINGS = ("apples", "houses", "rivers", "clouds", "horses", "stones", "ladders", "candles")
TEXTS = [f"{number} {thing}" for number in ("one", "two", "three", "four") for thing in THINGS]


def test_a_scale_gives_the_frequencies() -> None:
    """Rows are relevant with the probability of a known scale; the fitted one gives these probabilities back."""
    random = np.random.default_rng(0)
    features = random.normal(size=(20_000, 2))
    true = Scale((1.5, -0.5), 0.3)
    fitted = Scale.fitted(features, list(random.random(len(features)) < true(features)))
    assert np.abs(fitted(features) - true(features)).max() < 0.03
    with pytest.raises(InputError, match="at least 20 relevant hits"):
        Scale.fitted(features[:30], [True] * 15 + [False] * 15)


def test_min_score_leaves_out_what_is_not_relevant(tiny_bert: Path, tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    model = BiEncoder.load(tiny_bert, "cpu")
    with Index.open(tmp_path / "index", model) as index:
        index.add(TEXTS, TEXTS)
        with pytest.raises(InputError, match="calibrate"):
            index.search("two apples", min_score=0.5)
        assert index.search("two apples", k=1)[0].relevance is None
        index.calibrate(TEXTS, [[text] for text in TEXTS])
    with Index.open(tmp_path / "index") as index:  # kept with the index
        hits = index.search("two apples", k=10)
        assert hits[0].relevance is not None
        assert hits[0].relevance > 0.8
        assert [hit.text for hit in index.search("two apples", k=10, min_score=0.5)] == ["two apples"]
        assert index.search(["two apples"], k=10, min_score=0.0) == [hits]
        assert index.search("two apples", k=1, by="words")[0].relevance is None
        with pytest.raises(InputError, match="by dense"):
            index.search("two apples", by="words", min_score=0.5)
        with pytest.raises(InputError, match="no vector"):
            index.search(model.encode("two apples"), min_score=0.5)
        with pytest.raises(InputError, match="0 to 1"):
            index.search("two apples", min_score=2.0)
        with pytest.raises(InputError, match="every query"):
            index.calibrate(["a"], [])
