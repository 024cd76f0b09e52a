"""Paraphrase mining: as by scoring every pair of texts."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics

from munjang.bi_encoder import BiEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from munjang.evaluation.kinds import paraphrase_mining
from tests.texts import ENGLISH

FIRST, SECOND, LABELS = ENGLISH[:6], [*ENGLISH[6:11], ENGLISH[0]], np.array([1, 0, 1, 0, 1, 0])
PAIRS = Examples("pairs", (FIRST, SECOND), labels=LABELS)


def all_pairs(model: BiEncoder) -> tuple[list[bool], list[float]]:
    texts = list(dict.fromkeys([*FIRST, *SECOND]))
    gold = {frozenset((FIRST[row], SECOND[row])) for row in np.flatnonzero(LABELS)}
    vectors = model.encode_document(texts)
    pairs = list(combinations(range(len(texts)), 2))
    return [frozenset((texts[a], texts[b])) in gold for a, b in pairs], [
        float(vectors[a] @ vectors[b]) for a, b in pairs
    ]


def test_as_scikit_learn(model: BiEncoder) -> None:
    report = evaluate(model, PAIRS, kind="paraphrase_mining")
    is_gold, scores = all_pairs(model)
    assert (report.main, report.rows) == ("ap", 11)
    assert report.score == pytest.approx(sklearn.metrics.average_precision_score(is_gold, scores), abs=1e-6)


def test_what_is_not_mined_is_missed(model: BiEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paraphrase_mining, "MAX_PAIRS", 5)
    is_gold, scores = all_pairs(model)
    best = np.argsort(scores)[::-1][:5]
    hits = np.array(is_gold)[best]
    expected = sum(hits[: place + 1].mean() for place in np.flatnonzero(hits)) / 3
    assert evaluate(model, PAIRS, kind="paraphrase_mining").score == pytest.approx(expected, abs=1e-6)


def test_folder(model: BiEncoder, write: Callable[..., Path]) -> None:
    texts = list(dict.fromkeys([*FIRST, *SECOND]))
    write("folder/texts.tsv", "id\ttext", *(f"t{place}\t{text}" for place, text in enumerate(texts)))
    rows = [f"t{texts.index(FIRST[row])}\tt{texts.index(SECOND[row])}\t1" for row in np.flatnonzero(LABELS)]
    folder = write("folder/duplicates.tsv", "id1\tid2\tsame", *rows).parent
    found = evaluate(model, folder)
    assert found.kind == "paraphrase_mining"
    assert found.metrics == pytest.approx(evaluate(model, PAIRS, kind="paraphrase_mining").metrics, abs=1e-6)
    write("folder/duplicates.tsv", "id1\tid2\tsame", "t0\tnone\t1")
    with pytest.raises(InputError, match="no text has the id 'none'"):
        evaluate(model, folder)


def test_nothing_to_find_is_refused(model: BiEncoder) -> None:
    with pytest.raises(InputError, match="no pair says the same"):
        evaluate(model, Examples("same", (["a"], ["a"]), labels=np.array([1])), kind="paraphrase_mining")
