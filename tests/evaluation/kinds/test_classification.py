"""Classification: scikit-learn's accuracy with the same cost; classes are known by name."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sklearn.linear_model

from munjang.bi_encoder import BiEncoder
from munjang.data.examples import Examples
from munjang.errors import InputError
from munjang.evaluation import Settings, evaluate, prepare
from tests.texts import ENGLISH, KOREAN

TEXTS = [*ENGLISH[:12], *KOREAN[:12]]
LABELS = np.repeat([0, 1], 12)


def test_as_scikit_learn(model: BiEncoder) -> None:
    train = Examples("train", (TEXTS[::2],), labels=LABELS[::2], label_names=("en", "ko"))
    test = Examples("test", (TEXTS[1::2],), labels=LABELS[1::2], label_names=("en", "ko"))
    report = evaluate(model, test, train=train)
    assert (report.kind, report.main, report.rows) == ("classification", "accuracy", 12)
    cost = float(report.notes[0].rpartition(" ")[2])
    theirs = sklearn.linear_model.LogisticRegression(C=cost, max_iter=1000).fit(model.encode(TEXTS[::2]), LABELS[::2])
    assert report.score == pytest.approx(theirs.score(model.encode(TEXTS[1::2]), LABELS[1::2]), abs=1 / 12)
    assert "trained on 12 rows of train" in report.notes[0]


def test_classes_go_by_name_not_by_number(model: BiEncoder, write: Callable[..., Path]) -> None:
    names = ["korean" if label else "english" for label in LABELS]
    rows = [f"{text}\t{name}" for text, name in zip(TEXTS, names, strict=True)]
    train = write("train.tsv", "text\tlabel", *rows)
    # `english` is not in the test file, `aaa` not in the training file
    test = write("test.tsv", "text\tlabel", *rows[12:], "strange\taaa")
    report = evaluate(model, test, train=train)
    own = evaluate(model, write("own.tsv", "text\tlabel", *rows[12:]), train=train)
    assert report.score == pytest.approx(own.score * 12 / 13)
    assert any("1 rows are of classes without a training row" in note for note in report.notes)


def test_training_rows_are_drawn_from_the_whole_file(model: BiEncoder) -> None:
    train = Examples("train", (TEXTS,), labels=LABELS, label_names=("en", "ko"))  # sorted by class, as files are
    test = train.take([0, 1, 12, 13])
    split = prepare(test, "classification", Settings(train=train, max_train_rows=8, max_rows=2))[1]
    assert (len(split.train), len(split.test)) == (8, 2)
    assert set(split.train.labels.tolist()) == {0, 1}
    again = prepare(test, "classification", Settings(train=train, max_train_rows=8))[1]
    assert again.train.texts == split.train.texts
    assert "trained on 8 rows" in " ".join(evaluate(model, test, train=train, max_train_rows=8).notes)


def test_bad_training_rows_are_found_while_reading(write: Callable[..., Path]) -> None:
    test = write("test.tsv", "text\tlabel", "a\tx", "b\ty")
    with pytest.raises(InputError, match="no such file"):
        prepare(test, "classification", Settings(train="none.tsv"))


def test_a_class_with_one_row_is_said(model: BiEncoder) -> None:
    labels = np.array([*LABELS, 2])
    train = Examples("train", ([*TEXTS, "one of its kind"],), labels=labels, label_names=("en", "ko", "rare"))
    report = evaluate(model, Examples("test", (TEXTS,), labels=LABELS, label_names=("en", "ko")), train=train)
    assert any("fewer than 5 training rows, which can hardly be learned: rare (1)" in note for note in report.notes)


def test_refused(model: BiEncoder) -> None:
    test = Examples("test", (TEXTS,), labels=LABELS, label_names=("en", "ko"))
    with pytest.raises(InputError, match="give its rows with --train"):
        evaluate(model, test, kind="classification")
    with pytest.raises(InputError, match="none of the classes of other: en, ko"):
        evaluate(model, test, train=Examples("other", (TEXTS,), labels=LABELS, label_names=("x", "y")))
