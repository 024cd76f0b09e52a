"""Texts to labels: learned from examples, with probabilities that are calibrated, and an answer for "none of these".

>>> from munjang import BiEncoder
>>> from munjang.tasks.classify import Classifier
>>> texts, labels = ["I love it", "So good", "I hate it", "So bad"], ["+", "+", "-", "-"]
>>> classifier = Classifier.fit(texts, labels, BiEncoder.load())
>>> classifier.predict(["What a lovely day"])
['+']

N rows, D dimension, C classes.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from munjang.bi_encoder import BiEncoder
from munjang.errors import InputError
from munjang.tasks.classify import files as classifier_files
from munjang.tasks.classify.calibration import Calibration
from munjang.tasks.classify.config import ClassifyConfig
from munjang.tasks.classify.fit import Fitted, fit_all
from munjang.tasks.classify.linear_head import Head
from munjang.tasks.classify.targets import Label, read_labels
from munjang.text.inputs import as_texts, has_texts
from munjang.types import Doubles, Floats
from munjang.vectors.similarity import check_dimension, check_vectors, unit


@dataclass(frozen=True)
class Classifier:
    """A linear head on a model's vectors. Make one with `fit`, `load`, or `zero_shot`.

    >>> vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> Classifier.fit(vectors, ["yes", "yes", "no", "no"]).predict([[1.0, 0.1]])
    ['yes']
    """

    labels: tuple[Label, ...]
    head: Head
    calibration: Calibration
    threshold: float = 0.0  # of the probability: below it a text has none of the labels
    is_multi_label: bool = False  # a text has every label whose probability reaches the threshold
    method: str = "frozen"
    model: BiEncoder | None = None
    fingerprint: str | None = None  # of the model whose vectors these are; None where only vectors were given
    is_unit: bool = False  # vectors are brought to length one first
    report: Mapping[str, Any] = field(default_factory=dict)  # what was found out on held-out rows

    @classmethod
    def fit(
        cls,
        items: Any,
        labels: Iterable[Any],
        model: BiEncoder | None = None,
        config: ClassifyConfig | None = None,
        others: Any = None,
        progress: bool | None = None,
    ) -> "Classifier":
        """Learn from texts (which need a model) or ready vectors, and their labels: one each, or a list each.

        `others` are texts or vectors that have none of the labels; the threshold is chosen so that they get none.

        Raises InputError for fewer than two labels.

        >>> asked = ["Where is my parcel?", "When does it arrive?", "I want my money back", "Please refund me"]
        >>> classifier = Classifier.fit(asked, ["delivery", "delivery", "refund", "refund"], BiEncoder.load())
        >>> classifier.predict(["Has my package been sent?"])
        ['delivery']
        """
        config = config or ClassifyConfig()
        texts = as_texts(items) if _are_texts(items) else None
        if config.method == "few_shot" and (texts is None or model is None):
            raise InputError("few_shot trains the model: give texts and a model, or use method='frozen'.")
        vectors_ND = _vectors(items, model, None, progress)
        targets = read_labels(labels, len(vectors_ND))
        others_ND = None if others is None else _vectors(others, model, vectors_ND.shape[1], progress)
        if others is not None and config.method == "few_shot" and not _are_texts(others):
            raise InputError("few_shot changes the model's vectors: give the others as texts.")
        again = as_texts(others) if others is not None and config.method == "few_shot" else others_ND
        fitted: Fitted = fit_all(texts, vectors_ND, targets, model, config, again, progress)
        encoder = fitted.model if fitted.model is not None else model
        return cls(
            targets.names,
            fitted.head,
            fitted.calibration,
            fitted.threshold,
            targets.is_multi_label,
            config.method,
            encoder,
            None if encoder is None else encoder.fingerprint,
            report=fitted.report,
        )

    def probabilities(self, items: Any, progress: bool | None = None) -> Doubles:
        """Return the probability of each label [N, C] for texts or vectors, in the order of `labels`.

        Raises InputError for vectors of another dimension, or texts where there is no model.

        >>> vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> Classifier.fit(vectors, ["yes", "yes", "no", "no"]).probabilities([[1.0, 0.1]]).shape
        (1, 2)
        """
        vectors_ND = _vectors(items, self.model, self.head.weights_CD.shape[1], progress)
        vectors_ND = unit(vectors_ND) if self.is_unit else vectors_ND
        return self.calibration.probabilities(self.head.logits(vectors_ND), self.is_multi_label)

    def predict(self, items: Any, threshold: float | None = None, progress: bool | None = None) -> list[Any]:
        """Return the label of each text, None for none of them; with several labels a text, a list of those it has.

        `threshold`: the least probability of an answer; None: the classifier's own. Raises InputError for one that is
        not a probability.

        >>> vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> Classifier.fit(vectors, ["yes", "yes", "no", "no"]).predict([[1.0, 0.1]], threshold=1.0)
        [None]
        """
        if threshold is not None:  # before the work
            check_threshold(threshold)
        return self.answers(self.probabilities(items, progress), threshold)

    def answers(self, probabilities_NC: Doubles, threshold: float | None = None) -> list[Any]:
        """Return the answers of `predict` for these probabilities.

        >>> vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> classifier = Classifier.fit(vectors, ["yes", "yes", "no", "no"])
        >>> classifier.answers(classifier.probabilities([[1.0, 0.1]]), threshold=0.5)
        ['yes']
        """
        least = self.threshold if threshold is None else check_threshold(threshold)
        return answers(probabilities_NC, self.labels, least, self.is_multi_label)

    def with_threshold(self, threshold: float) -> "Classifier":
        """Return a copy that answers from another probability on.

        Raises InputError for a threshold that is not a probability.

        >>> vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> Classifier.fit(vectors, ["yes", "yes", "no", "no"]).with_threshold(1.0).predict([[1.0, 0.1]])
        [None]
        """
        return replace(self, threshold=check_threshold(threshold))

    def save(self, folder: str | os.PathLike[str], with_model: bool | None = None, replace: bool = False) -> None:
        """Write a folder: numbers as safetensors, the rest as JSON; whole or not at all.

        `with_model` puts the encoder into it; None: where it was trained, and is nowhere else. `replace` lets it take
        the place of an older classifier, and of nothing else.

        Raises InputError for a folder that exists already.

        >>> vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
        >>> Classifier.fit(vectors, ["yes", "yes", "no", "no"]).save("my-classifier")
        >>> Classifier.load("my-classifier").labels
        ('no', 'yes')
        """
        mine = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "model"}
        has_model = self.method == "few_shot" if with_model is None else with_model
        classifier_files.save(Path(folder), mine, self.model, has_model, replace)

    @classmethod
    def load(
        cls,
        folder: str | os.PathLike[str],
        model: BiEncoder | None = None,
        device: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
    ) -> "Classifier":
        """Read what `save` wrote, with the model it was fitted on; another model raises ModelMismatch.

        Without a `model` its own is loaded, as `BiEncoder.load` does with `device`, `dtype` and `threads`.

        Raises CheckpointError for a folder that holds no classifier.

        >>> sports = ["The team won.", "They lost the match."]
        >>> Classifier.fit([*sports, "Shares fell.", "Rates rose."], [0, 0, 1, 1], BiEncoder.load()).save("by-subject")
        >>> Classifier.load("by-subject", BiEncoder.load()).predict(["The team played well."])
        [0]
        """

        def load_model(path: str | os.PathLike[str]) -> BiEncoder:
            return BiEncoder.load(path, device, dtype, threads)

        saved, encoder = classifier_files.load(Path(folder), model, load_model)
        return cls(**saved, model=encoder)


def check_threshold(threshold: float) -> float:
    """Refuse a threshold that is not a probability; return it otherwise."""
    if not 0 <= threshold <= 1:
        raise InputError(f"A threshold is a probability, 0 to 1, not {threshold}.")
    return threshold


def answers(probabilities_NC: Doubles, labels: tuple[Label, ...], threshold: float, is_multi_label: bool) -> list[Any]:
    """Return the labels of rows by their probabilities; see `Classifier.predict`."""
    if is_multi_label:
        has_NC = probabilities_NC >= threshold
        return [[label for label, has in zip(labels, row, strict=True) if has] for row in has_NC.tolist()]
    best_N = probabilities_NC.argmax(1)
    top_N = np.take_along_axis(probabilities_NC, best_N[:, None], 1)[:, 0] if len(best_N) else np.zeros(0)
    places = zip(best_N.tolist(), (top_N >= threshold).tolist(), strict=True)
    return [labels[best] if is_kept else None for best, is_kept in places]


def _are_texts(items: Any) -> bool:
    return isinstance(items, str) or has_texts(items)


def _vectors(items: Any, model: BiEncoder | None, dimension: int | None, progress: bool | None) -> Floats:
    """Encode texts, or check that ready vectors have the dimension of the model or the head."""
    if _are_texts(items):
        texts = as_texts(items)
        if not texts and dimension is not None:  # nothing may be vectors too
            return np.zeros((0, dimension), np.float32)
        if model is None:
            raise InputError("Texts need a model; give one, or ready vectors.")
        return check_vectors(model.encode(texts, progress=progress), "vectors of the texts")
    vectors_ND = check_vectors(items, "vectors")
    wanted = dimension if dimension is not None else None if model is None else model.dimension
    if wanted is not None:
        check_dimension(vectors_ND, wanted, "vectors")
    return vectors_ND
