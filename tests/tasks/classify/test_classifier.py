"""Classifiers: from texts, from vectors, saved and loaded; bad input is told what to change."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.errors import CheckpointError, InputError
from munjang.index import ModelMismatch
from munjang.tasks.classify.classifier import Classifier
from munjang.tasks.classify.config import ClassifyConfig
from tests.texts import ENGLISH, KOREAN

RANDOM = np.random.default_rng(3)
CENTRES = RANDOM.normal(size=(3, 8))


def clouds(each: int, noise: float = 0.7, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), each)
    vectors = CENTRES[labels] + random.normal(size=(len(labels), 8)) * noise
    return vectors.astype(np.float32), [("ant", "bee", "cow")[label] for label in labels]


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, device="cpu", threads=1)


TEXTS = [f"{word} {other}" for word in ENGLISH[:3] for other in ENGLISH[10:14]]
TEXTS += [f"{word} {other}" for word in KOREAN[:3] for other in KOREAN[10:14]]
LABELS = ["english"] * 12 + ["korean"] * 12


def test_vectors_to_labels() -> None:
    vectors, labels = clouds(30)
    classifier = Classifier.fit(vectors, labels)
    assert classifier.labels == ("ant", "bee", "cow")
    test, truth = clouds(100, seed=1)
    right = np.mean([a == b for a, b in zip(classifier.predict(test), truth, strict=True)])
    assert right > 0.9
    assert classifier.report["accuracy"] == pytest.approx(right, abs=0.08)
    assert np.sum(classifier.report["confusion"]) == classifier.report["held_out"] == 90
    np.testing.assert_allclose(classifier.probabilities(test).sum(1), 1)


def test_probabilities_are_calibrated() -> None:
    vectors, labels = clouds(60, noise=1.6)
    classifier = Classifier.fit(
        vectors * 0.01, labels, config=ClassifyConfig(cost=1.0)
    )  # small weights: far too unsure
    assert classifier.report["calibration_error_before"] > 0.3
    assert classifier.report["calibration_error"] < 0.1
    test, truth = clouds(500, noise=1.6, seed=1)
    sure = classifier.probabilities(test * 0.01).max(1)
    right = np.mean([a == b for a, b in zip(classifier.predict(test * 0.01), truth, strict=True)])
    assert sure.mean() == pytest.approx(right, abs=0.06)


def test_none_of_these() -> None:
    """Vectors around another centre get no label once some like them were given as others."""
    vectors, labels = clouds(40)
    random = np.random.default_rng(5)
    others = (CENTRES.mean(0) + random.normal(size=(80, 8)) * 0.3).astype(np.float32)
    classifier = Classifier.fit(vectors, labels, others=others[:40])
    assert np.mean([label is None for label in classifier.predict(others[40:])]) > 0.7
    test, truth = clouds(100, seed=1)
    assert np.mean([a == b for a, b in zip(classifier.predict(test), truth, strict=True)]) > 0.7
    assert None not in classifier.predict(test, threshold=0)
    assert classifier.with_threshold(1.0).predict(others[:3]) == [None] * 3


def test_answers_that_are_right_often_enough() -> None:
    vectors, labels = clouds(100, noise=2.0)
    classifier = Classifier.fit(vectors, labels, config=ClassifyConfig(min_accuracy=0.9))
    assert 0 < classifier.report["answered"] < 1
    assert classifier.report["answered_accuracy"] >= 0.9
    test, truth = clouds(500, noise=2.0, seed=1)
    answered = [(a, b) for a, b in zip(classifier.predict(test), truth, strict=True) if a is not None]
    assert np.mean([a == b for a, b in answered]) > 0.85
    with pytest.warns(UserWarning, match="No threshold makes 100%"):
        Classifier.fit(np.ones((8, 2)), ["a", "b"] * 4, config=ClassifyConfig(min_accuracy=1.0))


def test_several_labels_a_text() -> None:
    vectors, names = clouds(30, noise=0.4)
    labels = [[name, "insect"] if name != "cow" else [name] for name in names]
    labels[0] = []
    classifier = Classifier.fit(vectors, labels)
    assert classifier.is_multi_label
    assert classifier.labels == ("ant", "bee", "cow", "insect")
    assert classifier.report["micro_f1"] > 0.9
    assert classifier.predict(CENTRES.astype(np.float32)) == [["ant", "insect"], ["bee", "insect"], ["cow"]]


def test_texts_and_back_from_disk(model: BiEncoder, tiny_bert: Path, tmp_path: Path) -> None:
    classifier = Classifier.fit(TEXTS, LABELS, model)
    assert classifier.predict(["the quick", "나는 오늘"]) == ["english", "korean"]
    classifier.save(tmp_path / "saved")
    assert sorted(path.name for path in (tmp_path / "saved").iterdir()) == ["classifier.json", "head.safetensors"]
    for again in (Classifier.load(tmp_path / "saved", device="cpu"), Classifier.load(tmp_path / "saved", model)):
        np.testing.assert_allclose(again.probabilities(TEXTS), classifier.probabilities(TEXTS), atol=1e-5)
        assert again.report == json.loads(json.dumps(classifier.report))
    with pytest.raises(InputError, match="is there already"):
        classifier.save(tmp_path / "saved")
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_only_a_classifier_is_replaced(tmp_path: Path) -> None:
    classifier = Classifier.fit(*clouds(3))
    for name in ("new", "new.tmp", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "new.tmp/thesis.txt").write_text("years of work")
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    classifier.save(tmp_path / "new")
    classifier.with_threshold(0.25).save(tmp_path / "new", replace=True)
    assert Classifier.load(tmp_path / "new").threshold == 0.25
    with pytest.raises(InputError, match="does not hold a classifier; choose another name"):
        classifier.save(tmp_path / "mine", replace=True)
    with pytest.raises(InputError, match="has no model to save"):
        classifier.save(tmp_path / "new", with_model=True, replace=True)
    with pytest.raises(TypeError, match="not JSON serializable"):
        dataclasses.replace(classifier, report={"what": object()}).save(tmp_path / "new", replace=True)
    assert Classifier.load(tmp_path / "new").threshold == 0.25
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == ["thesis.txt"] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "new", "new.tmp"]


def test_a_label_with_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    vectors, labels = clouds(3)
    names = ["green \ud800 apple" if label == "ant" else label for label in labels]
    Classifier.fit(vectors, names).save(tmp_path / "saved")
    assert Classifier.load(tmp_path / "saved").labels == ("bee", "cow", "green \ud800 apple")


def test_another_models_vectors(model: BiEncoder, make: Callable[..., Path], tmp_path: Path) -> None:
    Classifier.fit(TEXTS, LABELS, model).save(tmp_path / "saved")
    other = BiEncoder.load(make("bert", seed=11), device="cpu", threads=1)
    with pytest.raises(ModelMismatch, match=f"not of this model \\({other.fingerprint[:12]}"):
        Classifier.load(tmp_path / "saved", other)
    with pytest.raises(InputError, match="vectors have 8 dimensions, not 32: another model made them"):
        Classifier.load(tmp_path / "saved", model).predict(clouds(1)[0])


def test_few_shot_keeps_its_encoder(model: BiEncoder, tmp_path: Path) -> None:
    config = ClassifyConfig(method="few_shot", num_folds=2, num_pairs=1, learning_rate=1e-3)
    classifier = Classifier.fit(TEXTS, LABELS, model, config, others=["(really) 42"], progress=False)
    assert classifier.fingerprint != model.fingerprint
    assert classifier.report["held_out"] == 24
    classifier.save(tmp_path / "saved")
    again = Classifier.load(tmp_path / "saved", device="cpu")
    np.testing.assert_allclose(again.probabilities(TEXTS), classifier.probabilities(TEXTS), atol=1e-4)
    with pytest.raises(ModelMismatch):
        Classifier.load(tmp_path / "saved", model)


def test_damaged_folders(model: BiEncoder, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is not a classifier: classifier\.json is missing"):
        Classifier.load(tmp_path)
    Classifier.fit(TEXTS, LABELS, model).save(tmp_path / "saved")
    facts = json.loads((tmp_path / "saved/classifier.json").read_text())
    (tmp_path / "saved/classifier.json").write_text(json.dumps({**facts, "labels": ["a", "b", "c"]}))
    with pytest.raises(CheckpointError, match="not of one classifier"):
        Classifier.load(tmp_path / "saved", model)
    (tmp_path / "saved/classifier.json").write_text(json.dumps({**facts, "model": str(tmp_path / "gone")}))
    with pytest.raises(CheckpointError, match="needs its model"):
        Classifier.load(tmp_path / "saved")


def test_one_example_of_each() -> None:
    vectors, labels = CENTRES.astype(np.float32), ["ant", "bee", "cow"]
    classifier = Classifier.fit(vectors, labels)
    assert classifier.predict(vectors) == labels
    assert "nothing could be held out" in classifier.report["notes"][0]
    more, names = clouds(5)
    classifier = Classifier.fit(np.concatenate([more, -more[:1]]), [*names, "dog"])
    assert classifier.report["notes"] == [
        "one example of dog: never held out, so nothing is known of how well it is found"
    ]
    assert classifier.report["held_out"] == 15


def test_all_texts_equal(model: BiEncoder) -> None:
    classifier = Classifier.fit(["the same"] * 6, ["a", "b"] * 3, model)
    np.testing.assert_allclose(classifier.probabilities(["the same"]), [[0.5, 0.5]], atol=0.02)


def test_no_texts_to_predict(model: BiEncoder) -> None:
    classifier = Classifier.fit(TEXTS, LABELS, model)
    assert classifier.predict([]) == []
    assert classifier.probabilities([]).shape == (0, 2)
    of_vectors = Classifier.fit(*clouds(3))
    assert of_vectors.predict([]) == []
    assert of_vectors.probabilities([]).shape == (0, 3)


def test_a_threshold_is_a_probability() -> None:
    classifier = Classifier.fit(*clouds(3))
    for call in (classifier.with_threshold, lambda least: classifier.predict(clouds(1)[0], least)):
        for wrong in (2, -0.1, float("nan")):
            with pytest.raises(InputError, match=f"A threshold is a probability, 0 to 1, not {wrong}"):
                call(wrong)


@pytest.mark.parametrize(
    ("items", "labels", "told"),
    [
        ([], [], "No examples"),
        (["one"], ["a"], "all 1 are 'a'; give examples of others"),
        (["one", "two"], ["a"], "2 texts and 1 labels"),
        (["one", "two"], ["a", " "], "Label 1 is empty"),
        (["one", "two"], ["a", None], "Label 1 is empty"),
        (["one", "two"], ["a", float("nan")], "Label 1 is empty"),
        (["one", "two"], ["a", 1], "Some labels are names and some are numbers"),
        (["one", "two"], ["a", ["b"]], "one label for each text, or a list for each"),
        (["one", "two"], [[], []], "there are none"),
        ([[1.0, float("nan")], [0.0, 1.0]], ["a", "b"], "Vector 0 of the vectors holds NaN"),
        ([[1.0, 2.0], [0.0, 1.0]], ["a", "b"], "vectors have 2 dimensions, not 32"),
        ("one", ["a"], "should be a list of strings, not str"),
    ],
)
def test_what_is_refused(model: BiEncoder, items: object, labels: list[object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Classifier.fit(items, labels, model)


def test_a_threshold_needs_rows_to_be_chosen_on() -> None:
    vectors = CENTRES.astype(np.float32)
    with pytest.raises(InputError, match="others sets a threshold on held-out rows; give two examples of a label"):
        Classifier.fit(vectors, ["ant", "bee", "cow"], others=-vectors)
    with pytest.raises(InputError, match="the best F1; leave min_accuracy out"):
        Classifier.fit(vectors, [["ant"], ["bee"], []], config=ClassifyConfig(min_accuracy=0.9))


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(InputError, match="Texts need a model"):
        Classifier.fit(["one", "two"], ["a", "b"])
    with pytest.raises(InputError, match="few_shot trains the model"):
        Classifier.fit(*clouds(3), config=ClassifyConfig(method="few_shot"))
    for wrong, told in (
        ({"cost": 0.0}, "cost must be"),
        ({"method": "zzz"}, "Unknown method 'zzz'; choose from few_shot, frozen"),
        ({"calibration": "plat"}, "Unknown calibration 'plat'.* Did you mean 'platt'"),
        ({"method": "few_shot", "epochs": -1}, "epochs must be a number over 0, not -1"),
        ({"method": "few_shot", "learning_rate": float("nan")}, "learning_rate must be a number over 0, not nan"),
        ({"method": "few_shot", "batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"num_folds": 1}, "num_folds is 0, or at least 2"),
        ({"min_accuracy": 90}, "min_accuracy must be above 0 and at most 1"),
        ({"num_folds": 0, "min_accuracy": 0.9}, "chosen on held-out rows"),
    ):
        with pytest.raises(InputError, match=told):
            ClassifyConfig(**wrong)
