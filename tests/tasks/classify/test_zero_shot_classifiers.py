"""Labels in words: the nearest description, or the hypothesis that an inference model accepts."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.tasks.classify.classifier import Classifier
from munjang.tasks.classify.zero_shot_classifiers import NliClassifier, describe, zero_shot

TEXTS = ["a quick fox jumps", "나는 오늘 학교에 갔다", "old radio music"]


@pytest.fixture(scope="module")
def model(tiny_bert: Path) -> BiEncoder:
    return BiEncoder.load(tiny_bert, device="cpu", threads=1)


@pytest.fixture(scope="module")
def nli(make: Callable[..., Path]) -> CrossEncoder:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=3), device="cpu", threads=1)
    names = {"0": "contradiction", "1": "entailment", "2": "neutral"}
    scorer.model.config = {**scorer.model.config, "id2label": names}
    return scorer


def test_the_nearest_description(model: BiEncoder, tmp_path: Path) -> None:
    labels = {"animals": ["a fox", "lazy dogs"], "school": "학교", "music": "radio"}
    classifier = zero_shot(labels, model, temperature=0.1)
    one = model.encode(["a fox", "lazy dogs", "학교", "radio"], normalize=True)
    mean = one[:2].mean(0) / np.linalg.norm(one[:2].mean(0))
    cosines = model.encode(TEXTS, normalize=True) @ np.stack([mean, one[2], one[3]]).T
    expected = np.exp(cosines / 0.1) / np.exp(cosines / 0.1).sum(1, keepdims=True)
    np.testing.assert_allclose(classifier.probabilities(TEXTS), expected, atol=1e-5)
    classifier.save(tmp_path / "saved")
    np.testing.assert_allclose(Classifier.load(tmp_path / "saved", model).probabilities(TEXTS), expected, atol=1e-5)


def test_a_template_stands_around(model: BiEncoder) -> None:
    plain = zero_shot({"a": "text about music", "b": "text about soup"}, model)
    templated = zero_shot({"a": "music", "b": "soup"}, model, "text about {}")
    np.testing.assert_allclose(plain.probabilities(TEXTS), templated.probabilities(TEXTS), atol=1e-6)


def test_examples_set_the_temperature(model: BiEncoder) -> None:
    texts = ["radio", "soup", "radio music", "cold soup"]
    classifier = zero_shot(["radio", "soup"], model, temperature=50, examples=(texts, ["radio", "soup"] * 2))
    unsure = zero_shot(["radio", "soup"], model, temperature=50)
    assert unsure.probabilities(["radio"]).max() < 0.52
    assert classifier.probabilities(["radio"]).max() > 0.7
    with pytest.raises(InputError, match="'sport' is none of radio, soup"):
        zero_shot(["radio", "soup"], model, examples=(["x"], ["sport"]))


def test_hypotheses(nli: CrossEncoder) -> None:
    classifier = NliClassifier.of({"m": "music", "s": "학교"}, nli)
    assert classifier.hypotheses == ("This text is about music.", "이 글은 학교에 관한 것이다.")
    pairs = [(text, hypothesis) for text in TEXTS for hypothesis in classifier.hypotheses]
    logits = nli.predict(pairs, activation="Identity").reshape(3, 2, 3).astype(np.float64)
    against = np.exp(logits[:, :, 1])
    np.testing.assert_allclose(classifier.probabilities(TEXTS), against / against.sum(1, keepdims=True), atol=1e-4)
    several = NliClassifier.of({"m": "music", "s": "학교"}, nli, is_multi_label=True)
    rest = logits[:, :, [0, 2]].max(2)
    np.testing.assert_allclose(several.probabilities(TEXTS), 1 / (1 + np.exp(rest - logits[:, :, 1])), atol=1e-4)
    assert several.predict(TEXTS) == [
        [label for label, p in zip("ms", row, strict=True) if p >= 0.5] for row in several.probabilities(TEXTS)
    ]
    assert classifier.predict([]) == []


def test_a_scorer_of_other_labels(make: Callable[..., Path]) -> None:
    scorer = CrossEncoder.load(make("bert", kind="classifier", num_labels=3), device="cpu", threads=1)
    with pytest.raises(InputError, match="has no label 'entailment'"):
        NliClassifier.of(["a", "b"], scorer)


@pytest.mark.parametrize(
    ("labels", "template", "told"),
    [
        (["one"], "{}", "Two different labels or more are needed, not one"),
        ([], "{}", "not none"),
        (["a", "a"], "{}", "Two different labels"),
        ({"a": "x", "b": ""}, "{}", "The label 'b' or its description is empty"),
        ({"a": "x", "b": []}, "{}", "The label 'b' or its description is empty"),
        (["a", "b"], "about", "needs a place for the description"),
        ("ab", "{}", "Give labels as a list"),
    ],
)
def test_what_is_refused(labels: object, template: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        describe(labels, template)


def test_labels_from_a_generator() -> None:
    assert describe((name for name in ("sport", "money")), "about {}") == {
        "sport": ["about sport"],
        "money": ["about money"],
    }
    with pytest.raises(InputError, match="Two different labels or more are needed, not sport"):
        describe(iter(["sport"]), "{}")
