"""Settings of a training run: one frozen record, whose fields are also the flags of `munjang train`."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from munjang.errors import InputError
from munjang.options import option


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Settings of `train`. The defaults are the paper's: one epoch, batches of 16, 2e-5, a tenth of it warm-up.

    >>> TrainConfig(output="nli-model", batch_size=64, evaluate=("sts-dev.tsv",)).learning_rate
    2e-05
    """

    output: str | None = option("folder for the model and the run (default: train in memory only)", None, "-o")
    epochs: float = option("passes over the data", 1.0)
    max_steps: int | None = option("stop after this many updates", None)
    batch_size: int = option("examples in a batch, over all processes", 16)
    accumulate: int = option("batches in an update (gradient accumulation)", 1)
    learning_rate: float = option("peak learning rate", 2e-5)
    head_rate: float | None = option("learning rate of the objective's own parameters (default: the same)", None)
    layer_decay: float = option("learning-rate factor from one layer to the next lower one", 1.0)
    schedule: Literal["linear", "cosine", "constant"] = option(
        "how the learning rate falls after the warm-up", "linear"
    )
    warmup: float = option("fraction of the updates in which the learning rate rises", 0.1)
    weight_decay: float = option("weight decay of all weights but biases and norms", 0.01)
    clip: float | None = option("maximum norm of the gradient", 1.0)
    ema: float | None = option("decay of a moving average of the weights, which is saved instead of them", None)
    lora_rank: int | None = option("train adapters of this rank instead of the weights (needs peft)", None)
    dropout: float | None = option("dropout probability (default: the model's own)", None)
    max_length: int | None = option("maximum tokens of a text in training; the model keeps its own limit", None)
    stream: bool = option("read files a block of rows at a time: for data larger than memory", False)
    buffer_rows: int = option("rows of a streamed dataset in memory at once, among which batches are drawn", 50_000)
    sampler: Literal["random", "no_duplicates", "by_label", "by_length", "in_order"] | None = option(
        "how examples are grouped into batches (default: the objective's choice)", None
    )
    mixing: Literal["proportional", "round_robin", "round_robin_shortest", "temperature"] = option(
        "how batches of several datasets alternate", "proportional"
    )
    temperature: float = option("temperature of mixing: 1 is proportional, higher is more even", 2.0)
    batch_tokens: int | None = option("tokens in a micro-batch, which bounds memory (default: by device)", None)
    together: bool = option("run all batches of an update through the network at once, if they fit batch_tokens", False)
    gradient_cache: bool | None = option(
        "compute micro-batches twice instead of keeping them (default: if there are several)", None
    )
    matryoshka: tuple[int, ...] = option("train vectors to work when cut to these dimensions, too", ())
    flops: tuple[float, ...] = option(
        "keep sparse vectors sparse: the weight of that, or one for queries and one for documents", ()
    )
    matryoshka_weights: tuple[float, ...] = option("weight of each of those dimensions (default: equal)", ())
    adaptive_layers: bool = option("train earlier layers too, so that layers can be dropped later", False)
    evaluate: tuple[str, ...] = option("files to evaluate on; the first decides which checkpoint is best", ())
    avoid: tuple[str, ...] | None = option(
        "drop rows that share a sentence with these files (default: those of evaluate)", None
    )
    evaluate_every: int | None = option("updates between evaluations (default: one epoch)", None)
    patience: int | None = option("stop after this many evaluations without improvement", None)
    save_every: int | None = option("updates between checkpoints (default: a twentieth of the run)", None)
    log_every: int = option("updates between lines of the log", 10)
    tensorboard: bool = option("also write TensorBoard events", False)
    resume: bool = option("resume the run in the output folder", False)
    seed: int = option("seed of all random numbers", 12)
    device: str | None = option("cpu, cuda, cuda:1 (default: the best there is)", None)
    dtype: Literal["float32", "bfloat16"] | None = option(
        "dtype of the network's arithmetic; weights stay float32 (default: bfloat16 on a GPU that has it)", None
    )
    quiet: bool = option("print errors only", False)

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
            raise InputError(f"dropout is a probability, from 0 to below 1, not {self.dropout}.")
        if not 0 <= self.warmup <= 1:
            raise InputError(f"warmup is a fraction of the run, 0 to 1, not {self.warmup}.")
        if self.ema is not None and not 0 < self.ema < 1:
            raise InputError(f"ema must lie between 0 and 1, such as 0.999, not {self.ema}.")
        if self.resume and self.output is None:
            raise InputError("resume needs the output folder of the stopped run.")
        if self.together and self.gradient_cache:
            raise InputError(
                "together keeps the activations of all batches, gradient_cache of one micro-batch; set one."
            )
        if self.patience is not None and not self.evaluate:
            raise InputError("patience counts evaluations; name files in evaluate.")

    @property
    def avoided(self) -> tuple[str, ...]:
        """Return the files that training must not share a sentence with."""
        return self.evaluate if self.avoid is None else self.avoid


COUNTS = (
    *("batch_size", "accumulate", "log_every", "max_steps", "evaluate_every", "patience", "save_every"),
    *("batch_tokens", "lora_rank", "buffer_rows"),
)
# may change when a run is resumed: they affect neither weights nor losses
HARMLESS = {"output", "save_every", "log_every", "tensorboard", "resume", "quiet", "device"}


def deciding(config: TrainConfig) -> dict[str, Any]:
    """Return the settings that decide what a run computes, as plain values."""
    settings = asdict(config)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in settings.items()
        if name not in HARMLESS
    }
