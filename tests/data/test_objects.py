"""Objects with rows give the examples that a file with the same rows gives."""

from typing import Any

import numpy as np
import pandas
import pyarrow
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.data.reading import read_examples
from munjang.errors import InputError
from munjang.evaluation import evaluate
from munjang.training.config import TrainConfig
from munjang.training.train import train
from tests.data.written import PAIRS

HELD: dict[str, Any] = {
    "dicts": PAIRS,
    "tuples": [(row["sentence1"], row["sentence2"], float(str(row["score"]))) for row in PAIRS],
    "pandas": pandas.DataFrame(PAIRS),
    "arrow": pyarrow.Table.from_pylist([{**row, "score": float(str(row["score"]))} for row in PAIRS]),
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
def test_same_as_a_file(held: object, tiny_bert: Any) -> None:
    examples = read_examples(held, target="scores")
    assert examples.texts == ([row["sentence1"] for row in PAIRS], [row["sentence2"] for row in PAIRS])
    assert examples.scores is not None
    assert examples.scores.tolist() == [1.0, 0.1, 0.5]
    assert "3 rows" in examples.name
    report = evaluate(BiEncoder.load(tiny_bert, device="cpu"), held)
    assert (report.kind, report.rows) == ("sts", 3)


def test_trained_on(tiny_bert: Any) -> None:
    model = BiEncoder.load(tiny_bert, device="cpu", dtype="float32")
    before = model.encode("A cat sits.")
    train(model, HELD["pandas"], "regression", TrainConfig(max_steps=2, quiet=True, device="cpu", learning_rate=1e-2))
    assert not np.allclose(before, model.encode("A cat sits."))


def test_triplets_and_labels() -> None:
    assert read_examples([("a", "b", "c")]).columns == ("anchor", "positive", "negative_1")
    assert read_examples([("a", 1), ("b", 0)], target="labels").label_names == ("0", "1")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(1, "a")], "A tuple of int, str is not clear; give texts first"),
        ([("a", "b"), ("c",)], r"row \(from 0\) 1: 1 fields, but the first row has 2"),
        ([{"text": "a"}, {"other": "b"}], r"row \(from 0\) 1: no 'text'"),
        ([{"text": "a"}, 5], "a int, not a dict"),
    ],
)
def test_refused(rows: list[Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_examples(rows)
