"""Zero-shot: labels described in words, and no examples at all.

>>> from munjang import BiEncoder
>>> from munjang.tasks.classify import zero_shot
>>> labels = {"sport": "a match, a player, a team", "money": "banks, prices, shares"}
>>> classifier = zero_shot(labels, BiEncoder.load())
>>> classifier.predict(["The keeper saved a penalty."])
['sport']

N texts, C labels, H hypotheses. Probabilities come from a fixed temperature: they order labels, but are calibrated only
where some labelled texts are given as `examples`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.errors import InputError
from munjang.tasks.classify import calibration
from munjang.tasks.classify.calibration import Calibration
from munjang.tasks.classify.classifier import Classifier, answers, check_threshold
from munjang.tasks.classify.linear_head import Head
from munjang.tasks.classify.targets import Label
from munjang.text.inputs import as_texts
from munjang.types import Doubles
from munjang.vectors.similarity import unit

TEMPERATURE = 0.05  # of cosines: that of in-batch training, where they are compared in the same way
HANGUL = re.compile("[가-힣]")
HYPOTHESES = {True: "이 글은 {}에 관한 것이다.", False: "This text is about {}."}  # whether the label is Korean
ENTAILMENT = ("entailment", "entail", "함의")

Descriptions = Mapping[str, str | Sequence[str]] | Sequence[str]


def zero_shot(
    labels: Descriptions,
    model: BiEncoder,
    template: str = "{}",
    temperature: float = TEMPERATURE,
    examples: tuple[Any, Sequence[Label]] | None = None,
) -> Classifier:
    """Make a classifier whose weights are the vectors of the labels' descriptions: one each, or the mean of several.

    `template` stands around each description, as "a question about {}". `examples`, texts and their labels, set the
    temperature.

    Raises InputError for a temperature that is not over 0.

    >>> zero_shot(["sports", "economy"], BiEncoder.load()).predict(["The team won the final."])
    ['sports']
    """
    if not 0 < temperature < float("inf"):
        raise InputError(f"temperature must be a number over 0, not {temperature}.")
    described = describe(labels, template)
    flat = [text for texts in described.values() for text in texts]
    vectors_HD = unit(model.encode(flat, progress=False))
    ends = np.cumsum([len(texts) for texts in described.values()])[:-1]
    weights_CD = unit(np.stack([each.mean(0) for each in np.split(vectors_HD, ends)]))
    num_labels = len(described)
    found = Calibration(np.full(num_labels, 1 / temperature), np.zeros(num_labels))
    head = Head(weights_CD, np.zeros(num_labels, np.float32))
    facts = {"descriptions": {name: list(texts) for name, texts in described.items()}}
    made = Classifier(
        tuple(described), head, found, 0.0, False, "zero_shot", model, model.fingerprint, is_unit=True, report=facts
    )
    return made if examples is None else _calibrated(made, *examples)


@dataclass(frozen=True)
class NliClassifier:
    """Labels as hypotheses that a cross-encoder for inference accepts or not. One score a pair (a re-ranker) works too.

    `NliClassifier.of(["sport", "money"], CrossEncoder.load("path/to/an/nli/model")).predict(texts)`
    """

    labels: tuple[str, ...]
    hypotheses: tuple[str, ...]
    scorer: CrossEncoder
    is_multi_label: bool = False
    threshold: float = 0.0

    @classmethod
    def of(
        cls,
        labels: Descriptions,
        scorer: CrossEncoder,
        template: str | None = None,
        is_multi_label: bool = False,
        threshold: float | None = None,
    ) -> "NliClassifier":
        """Make a classifier; `template` None takes an English sentence, or a Korean one for labels in Hangul."""
        entailment_column(scorer)
        described = describe(labels, "{}")
        for name, texts in described.items():
            if len(texts) > 1:
                raise InputError(f"A hypothesis for each label, please; {name!r} has {len(texts)} descriptions.")
        hypotheses = [
            (template or HYPOTHESES[bool(HANGUL.search(text))]).replace("{}", text) for (text,) in described.values()
        ]
        least = threshold if threshold is not None else 0.5 if is_multi_label else 0.0
        return cls(tuple(described), tuple(hypotheses), scorer, is_multi_label, least)

    def probabilities(self, texts: Any, progress: bool | None = None) -> Doubles:
        """Return the probability of each label [N, C]: against all others, or, with several labels, against not."""
        rows = as_texts(texts)
        pairs = [(text, hypothesis) for text in rows for hypothesis in self.hypotheses]
        if not pairs:
            return np.zeros((0, len(self.labels)))
        found = self.scorer.predict(pairs, activation="Identity", progress=progress)
        scores: NDArray[Any] = np.asarray(found, np.float64).reshape(len(rows), len(self.labels), -1)
        column = entailment_column(self.scorer)
        logits_NC = scores[:, :, column]
        if self.is_multi_label and scores.shape[2] > 1:  # entailment against the strongest of the others
            logits_NC = logits_NC - np.delete(scores, column, 2).max(2)
        return calibration.none(len(self.labels)).probabilities(logits_NC, self.is_multi_label)

    def predict(self, texts: Any, threshold: float | None = None, progress: bool | None = None) -> list[Any]:
        """Return the label of each text, as `Classifier.predict` does."""
        least = self.threshold if threshold is None else check_threshold(threshold)
        return answers(self.probabilities(texts, progress), self.labels, least, self.is_multi_label)


def describe(labels: Descriptions, template: str) -> dict[str, list[str]]:
    """Return the descriptions of each label; a label without one describes itself."""
    if "{}" not in template:
        raise InputError(f"The template needs a place for the description, {{}}: {template!r:.60}.")
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InputError("Give labels as a list, or as {label: description}.")
    labels = labels if isinstance(labels, Mapping) else list(labels)  # a generator has no length
    given: dict[str, Any] = dict(labels) if isinstance(labels, Mapping) else {name: name for name in labels}
    if len(given) < 2 or (not isinstance(labels, Mapping) and len(given) < len(labels)):
        raise InputError(f"Two different labels or more are needed, not {', '.join(map(str, labels)) or 'none'}.")
    found = {}
    for name, texts in given.items():
        several = as_texts([texts] if isinstance(texts, str) else texts, f"descriptions of {name!r}")
        if not str(name).strip() or not several or not all(text.strip() for text in several):
            raise InputError(f"The label {name!r} or its description is empty; say in words what it means.")
        found[name] = [template.replace("{}", text) for text in several]
    return found


def entailment_column(scorer: CrossEncoder) -> int:
    """Return the output that says that the second text follows from the first."""
    if scorer.num_labels == 1:
        return 0
    names = {int(place): str(name).lower() for place, name in (scorer.model.config.get("id2label") or {}).items()}
    for place, name in names.items():
        if name in ENTAILMENT and place < scorer.num_labels:
            return place
    shown = ", ".join(names.values()) or "no names"
    raise InputError(f"This cross-encoder has no label 'entailment' ({shown}); give one that was trained on NLI.")


def _calibrated(made: Classifier, texts: Any, labels: Sequence[Label]) -> Classifier:
    rows = as_texts(texts)
    if len(rows) != len(labels) or not rows:
        raise InputError(f"{len(rows)} example texts and {len(labels)} labels; give at least one, each with its label.")
    strange = [label for label in labels if label not in made.labels]
    if strange:
        raise InputError(f"The example label {strange[0]!r} is none of {', '.join(map(str, made.labels))}.")
    assert made.model is not None
    logits_NC = made.head.logits(unit(made.model.encode(rows, progress=False)))
    has_NC = np.array([[label == name for name in made.labels] for label in labels])
    return replace(made, calibration=calibration.fit(logits_NC, has_NC, "temperature"))
