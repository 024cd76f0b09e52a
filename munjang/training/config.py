"""How a model is trained: one frozen record, whose fields are the flags of `munjang train` too."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from munjang.errors import InputError
from munjang.options import option


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How to train. Defaults are the paper's: one epoch, batches of 16, 2e-5, a tenth of the steps to warm up.

    >>> TrainConfig(output="nli-model", batch_size=64, evaluate=("sts-dev.tsv",)).learning_rate
    2e-05
    """

    output: str | None = option("folder for the model and the run; none: the model is trained in memory", None, "-o")
    epochs: float = option("how often every example is seen", 1.0)
    max_steps: int | None = option("end after so many updates", None)
    batch_size: int = option("examples of a batch, of all processes together", 16)
    accumulate: int = option("batches of an update", 1)
    learning_rate: float = option("highest learning rate", 2e-5)
    head_rate: float | None = option("learning rate of the objective's own parameters (default: the same)", None)
    layer_decay: float = option("each layer learns so many times as fast as the one above it", 1.0)
    schedule: Literal["linear", "cosine", "constant"] = option("how the rate falls after the warm-up", "linear")
    warmup: float = option("share of the updates in which the rate rises", 0.1)
    weight_decay: float = option("of all weights but biases and norms", 0.01)
    clip: float | None = option("longest gradient", 1.0)
    ema: float | None = option("keep a moving average of the weights with this decay, and save that", None)
    lora_rank: int | None = option("train adapters of this rank instead of the weights (needs peft)", None)
    dropout: float | None = option("replace the model's own dropout", None)
    max_length: int | None = option("longest text in tokens while training; the model keeps its own limit", None)
    sampler: Literal["random", "no_duplicates", "by_label", "by_length", "in_order"] | None = option(
        "how batches are put together (default: what suits the objective)", None
    )
    mixing: Literal["proportional", "round_robin", "temperature"] = option(
        "how several datasets take turns", "proportional"
    )
    temperature: float = option("of mixing: 1 is proportional, larger is more even", 2.0)
    batch_tokens: int | None = option("tokens that go through the network at once (default: by device)", None)
    together: bool = option("batches of an update go through the network at once, where they fit batch_tokens", False)
    gradient_cache: bool | None = option("compute chunks twice and keep one (default: where there are several)", None)
    matryoshka: tuple[int, ...] = option("dimensions at which vectors have to be good too", ())
    matryoshka_weights: tuple[float, ...] = option("what each of those dimensions weighs (default: all the same)", ())
    adaptive_layers: bool = option("every layer's vectors have to be good too", False)
    evaluate: tuple[str, ...] = option("files to evaluate on; the first one decides which checkpoint is best", ())
    avoid: tuple[str, ...] | None = option(
        "drop rows that share a sentence with these files (default: those of evaluate)", None
    )
    evaluate_every: int | None = option("updates between evaluations (default: an epoch)", None)
    patience: int | None = option("stop after so many evaluations without a better one", None)
    save_every: int | None = option("updates between checkpoints (default: a twentieth of the run)", None)
    log_every: int = option("updates between lines of the log", 10)
    tensorboard: bool = option("write TensorBoard's events too", False)
    resume: bool = option("go on with the run that is in the output folder", False)
    seed: int = option("of everything that is drawn", 12)
    device: str | None = option("cpu, cuda, cuda:1 (default: the best there is)", None)
    dtype: Literal["float32", "bfloat16"] | None = option(
        "of the network's arithmetic; weights stay float32 (default: bfloat16 on a GPU that has it)", None
    )
    quiet: bool = option("say nothing but errors", False)

    def __post_init__(self) -> None:
        for name in ("learning_rate", "head_rate", "weight_decay", "layer_decay"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{name} must be a number of at least 0, not {value}.")
        for name in ("epochs", "clip", "temperature"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"{name} must be a number over 0, not {value}.")
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, not {value}.")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise InputError(f"dropout is a share, from 0 to below 1, not {self.dropout}.")
        if not 0 <= self.warmup <= 1:
            raise InputError(f"warmup is a share of the run, 0 to 1, not {self.warmup}.")
        if self.ema is not None and not 0 < self.ema < 1:
            raise InputError(f"ema must lie between 0 and 1, such as 0.999, not {self.ema}.")
        if self.resume and self.output is None:
            raise InputError("resume needs the output folder of the run that is to go on.")
        if self.together and self.gradient_cache:
            raise InputError("together keeps the activations of all batches, gradient_cache of one chunk; set one.")
        if self.patience is not None and not self.evaluate:
            raise InputError("patience counts evaluations; name files in evaluate.")


COUNTS = (
    *("batch_size", "accumulate", "log_every", "max_steps", "evaluate_every", "patience", "save_every"),
    *("batch_tokens", "lora_rank"),
)
# what a run may be stopped and gone on with differently: it changes neither weights nor losses
HARMLESS = {"output", "save_every", "log_every", "tensorboard", "resume", "quiet", "device"}


def deciding(config: TrainConfig) -> dict[str, Any]:
    """The settings that decide what a run computes, as plain values."""
    settings = asdict(config)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
        if name not in HARMLESS
    }
