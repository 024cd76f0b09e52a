"""Settings of `munjang paper`: what is trained on what, and for how long."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from munjang.errors import InputError
from munjang.options import option
from munjang.training.config import TrainConfig

QUICK_ROWS, QUICK_TEST_ROWS, QUICK_SPEED_TEXTS = 48, 120, 120
SAVE_EVERY = 2000  # updates between checkpoints of a training
HARMLESS = {"device", "workers", "only", "seeds"}  # may change when a run goes on


@dataclass(frozen=True, kw_only=True)
class PaperConfig:
    """Settings of all experiments; the defaults are the paper's, but for the rate of the softmax layer."""

    language: Literal["ko", "en"] = option("language of the sets", "ko")
    seeds: tuple[int, ...] = option("seeds; each line is trained with each (the paper: ten)", (1, 2, 3), metavar="SEED")
    only: tuple[str, ...] = option("tables to make, by name; --dry-run lists them (default: all)", (), metavar="TABLE")
    nli_epochs: int = option("epochs on NLI and its triplets", 1)
    sts_epochs: int = option("epochs on similarity", 4)
    batch_size: int = option("examples in a batch", 16)
    learning_rate: float = option("peak learning rate on NLI and triplets", 2e-5)
    sts_learning_rate: float = option("peak learning rate on similarity", 2e-5)
    head_rate: float = option(
        "learning rate of the softmax layer; with the paper's 2e-5 it needs the paper's data", 1e-3
    )
    sts_objective: Literal["regression", "cosent", "angle"] = option(
        "objective on similarity; the paper's is regression", "regression"
    )
    max_train_rows: int | None = option("train on at most this many rows of a set, drawn at random", None)
    max_test_rows: int | None = option("measure on at most this many rows of a set, drawn at random", None)
    speed_texts: int = option("texts whose encoding is timed", 2000)
    static: str | None = option("static model for the line of averaged word vectors (default: the model's own)", None)
    device: str | None = option("cpu, cuda, cuda:1 (default: the best there is)", None)
    workers: int = option("processes that train at once; more than one helps a small model on a GPU", 1)
    quick: bool = option("one seed and a few rows of everything: minutes, to see that all of it works", False)

    def __post_init__(self) -> None:
        for name in (
            "nli_epochs",
            "sts_epochs",
            "batch_size",
            "max_train_rows",
            "max_test_rows",
            "speed_texts",
            "workers",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}.")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InputError(f"seeds must be different numbers, at least one, not {list(self.seeds)}.")

    def applied(self) -> "PaperConfig":
        """Return the settings with what `quick` stands for."""
        if not self.quick:
            return self
        return replace(
            self,
            seeds=self.seeds[:1],
            nli_epochs=1,
            sts_epochs=1,
            max_train_rows=min(self.max_train_rows or QUICK_ROWS, QUICK_ROWS),
            max_test_rows=min(self.max_test_rows or QUICK_TEST_ROWS, QUICK_TEST_ROWS),
            speed_texts=min(self.speed_texts, QUICK_SPEED_TEXTS),
        )

    def training(self, objective: str, seed: int) -> TrainConfig:
        """Return the settings of one stage."""
        is_similarity = objective in ("regression", "cosent", "angle", "cross_bce")
        return TrainConfig(
            epochs=self.sts_epochs if is_similarity else self.nli_epochs,
            batch_size=self.batch_size,
            learning_rate=self.sts_learning_rate if is_similarity else self.learning_rate,
            head_rate=self.head_rate if objective == "classification" else None,
            seed=seed,
            device=self.device,
            save_every=SAVE_EVERY,
            quiet=True,
        )

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide a figure, as plain values."""
        return {name: value for name, value in asdict(self).items() if name not in HARMLESS}
