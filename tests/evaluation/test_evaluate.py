"""evaluate(): what it takes, what it refuses, what a report says."""

from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import KINDS, check_model, dataset_name, evaluate

PAIRS = Examples("folder/pairs.tsv.xz", (["a", "b", "c"], ["d", "e", "f"]), scores=np.array([0.1, 0.2, 0.4]))


def test_report(model: BiEncoder, tiny_bert: Path) -> None:
    report = evaluate(model, PAIRS)
    assert (report.model, report.dataset, report.rows) == (tiny_bert.name, "pairs", 3)
    assert report.score == report.metrics["spearman_cosine"]
    assert report.seconds > 0
    assert report.machine
    assert report.date.endswith("UTC")


def test_cut_texts_are_noted(model: BiEncoder) -> None:
    long = Examples("long", (["word " * 300, "b", "c"], ["d", "e", "f"]), scores=np.array([0.1, 0.2, 0.4]))
    assert any(note.startswith("1 of ") and "were cut" in note for note in evaluate(model, long).notes)


def test_long_texts_can_be_read_whole(model: BiEncoder, cross: CrossEncoder) -> None:
    long = Examples("long", (["a fox " * 300, "b", "c"], ["d", "e", "f"]), scores=np.array([0.1, 0.2, 0.4]))
    whole = evaluate(model, long, long="average")
    assert whole.notes == ()
    assert whole.metrics["pearson_cosine"] != evaluate(model, long).metrics["pearson_cosine"]
    with pytest.raises(InputError, match="long='average' is for vectors"):
        evaluate(cross, long, long="average")


def test_max_rows(model: BiEncoder) -> None:
    assert evaluate(model, PAIRS, max_rows=2).rows == 2
    with pytest.raises(InputError, match="max_rows must be at least 1, not 0"):
        evaluate(model, PAIRS, max_rows=0)


def test_refused(model: BiEncoder, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Unknown kind 'stsb'; choose from .*Did you mean 'sts'"):
        evaluate(model, PAIRS, kind="stsb")
    with pytest.raises(InputError, match=r"Unknown option of evaluate 'max_row'.*Did you mean 'max_rows'"):
        evaluate(model, PAIRS, max_row=3)
    with pytest.raises(InputError, match="not str; load it first"):
        evaluate("path/to/model", PAIRS)
    with pytest.raises(InputError, match="no such file"):
        evaluate(model, tmp_path / "none.tsv")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_says_which_models_it_measures(kind: str, cross: CrossEncoder) -> None:
    assert check_model(kind, "bi") == KINDS[kind].main["bi"]
    if "cross" not in KINDS[kind].main:
        with pytest.raises(InputError, match="a cross-encoder has none; it can be measured on sts, nli, pairs"):
            check_model(kind, "cross")


def test_dataset_name() -> None:
    assert [dataset_name(name) for name in ("a/b-test.tsv.xz", "set/cranfield", "x.v2.csv")] == [
        "b-test",
        "cranfield",
        "x.v2",
    ]
