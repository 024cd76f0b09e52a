"""Settings of a classifier's training: one frozen record, whose fields are flags of `munjang classify train` too."""

from dataclasses import dataclass
from typing import Literal

from munjang.errors import InputError, unknown
from munjang.options import option

CALIBRATIONS = ("none", "temperature", "platt")
NUM_FOLDS = {"frozen": 5, "few_shot": 3}  # few_shot trains the encoder once more for each


@dataclass(frozen=True, kw_only=True)
class ClassifyConfig:
    """Settings of a classifier's training. Those of few_shot are SetFit's, but for fewer pairs (docs/log.md).

    >>> ClassifyConfig(method="few_shot", min_accuracy=0.9).calibration
    'temperature'
    """

    method: Literal["frozen", "few_shot"] = option(
        "frozen: a logistic head on the model's vectors; few_shot: the model learns from pairs first", "frozen"
    )
    calibration: Literal["none", "temperature", "platt"] = option(
        "what makes probabilities of logits, fitted on held-out rows: one temperature, or a pair for each label",
        "temperature",
    )
    cost: float | None = option("how much examples weigh against small weights (default: best on held-out rows)", None)
    num_folds: int | None = option("parts held out in turn, 0: none (default: 5; few_shot 3)", None)
    min_accuracy: float | None = option("abstain where a smaller fraction of the answers would be right", None)
    num_pairs: int = option("few_shot: partners of each text with its label, and as many without", 5)
    epochs: float = option("few_shot: how often pairs are seen", 1.0)
    batch_size: int = option("few_shot: pairs of a batch", 16)
    learning_rate: float = option("few_shot: highest learning rate", 2e-5)
    seed: int = option("of everything that is drawn", 0)

    def __post_init__(self) -> None:
        for name, table in (("method", NUM_FOLDS), ("calibration", CALIBRATIONS)):
            if getattr(self, name) not in table:
                raise unknown(name, getattr(self, name), table)
        if self.cost is not None and not 0 < self.cost < float("inf"):
            raise InputError(f"cost must be a number over 0, not {self.cost}.")
        if self.num_folds is not None and (self.num_folds < 0 or self.num_folds == 1):
            raise InputError(f"num_folds is 0, or at least 2 to hold one part out, not {self.num_folds}.")
        if self.min_accuracy is not None and not 0 < self.min_accuracy <= 1:
            raise InputError(f"min_accuracy must be above 0 and at most 1, not {self.min_accuracy}.")
        for name in ("num_pairs", "batch_size"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}.")
        for name in ("epochs", "learning_rate"):
            if not 0 < getattr(self, name) < float("inf"):
                raise InputError(f"{name} must be a number over 0, not {getattr(self, name)}.")
        if self.method != "few_shot":
            for name in ("num_pairs", "epochs", "batch_size", "learning_rate"):
                if getattr(self, name) != type(self).__dataclass_fields__[name].default:
                    raise InputError(f"{name} is for method few_shot; {self.method} doesn't train the model.")
        if self.folds == 0 and self.min_accuracy is not None:
            raise InputError("A threshold is chosen on held-out rows; leave num_folds=0 or min_accuracy out.")

    @property
    def folds(self) -> int:
        """Parts that are held out in turn."""
        return NUM_FOLDS[self.method] if self.num_folds is None else self.num_folds
