"""Arguments of a training under their names: transformers' (extra), and prompts, samplers and learning rates."""

import json
import logging
from dataclasses import dataclass, field
from typing import Any, Union

from transformers import TrainingArguments
from transformers.training_args import ParallelMode

from munjang.compat.training.samplers import BatchSamplers, MultiDatasetBatchSamplers

logger = logging.getLogger(__name__)


@dataclass
class BaseTrainingArguments(TrainingArguments):  # type: ignore[misc]
    """Arguments of a training."""

    _VALID_DICT_FIELDS = [  # noqa: RUF012  # transformers' own name and kind
        *("accelerator_config", "fsdp_config", "deepspeed", "gradient_checkpointing_kwargs", "lr_scheduler_kwargs"),
        *("learning_rate_mapping", "prompts", "router_mapping"),
    ]
    warmup_steps: float = field(default=0)
    dataloader_drop_last: bool = field(default=False)
    # str first: the command line gives these as JSON (HfArgumentParser)
    prompts: Union[str, None, dict[str, str], dict[str, dict[str, str]]] = field(  # noqa: RUF036, UP007
        default=None, metadata={"help": "prompts: one, or by column, by dataset, or by both"}
    )
    batch_sampler: Union[BatchSamplers, str] = field(  # noqa: UP007
        default=BatchSamplers.BATCH_SAMPLER, metadata={"help": "how rows share a batch"}
    )
    multi_dataset_batch_sampler: Union[MultiDatasetBatchSamplers, str] = field(  # noqa: UP007
        default=MultiDatasetBatchSamplers.PROPORTIONAL, metadata={"help": "how datasets alternate"}
    )
    router_mapping: Union[str, None, dict[str, str], dict[str, dict[str, str]]] = field(  # noqa: RUF036, UP007
        default_factory=dict, metadata={"help": "routes of columns"}
    )
    learning_rate_mapping: Union[str, None, dict[str, float]] = field(  # noqa: RUF036, UP007
        default_factory=dict, metadata={"help": "learning rates by parameter names"}
    )
    warmup_ratio: float | None = field(default=None, metadata={"help": "share of the run in which the rate rises"})

    def __post_init__(self) -> None:
        if self.warmup_ratio is not None and not self.warmup_steps:
            self.warmup_steps, self.warmup_ratio = self.warmup_ratio, None
        super().__post_init__()
        if isinstance(self.batch_sampler, str):
            self.batch_sampler = BatchSamplers(self.batch_sampler)
        if isinstance(self.multi_dataset_batch_sampler, str):
            self.multi_dataset_batch_sampler = MultiDatasetBatchSamplers(self.multi_dataset_batch_sampler)
        if isinstance(self.prompts, str):
            self.prompts = _from_json(self.prompts, self.prompts)
        for name in ("router_mapping", "learning_rate_mapping"):
            value = getattr(self, name)
            value = _from_json(value, None) if isinstance(value, str) else value or {}
            if not isinstance(value, dict):
                raise ValueError(f"The `{name}` argument must be a dictionary. A stringified dictionary also works.")
            setattr(self, name, value)
        self.prediction_loss_only = True
        self.ddp_broadcast_buffers = False
        if self.parallel_mode == ParallelMode.DISTRIBUTED and not self.dataloader_drop_last:
            logger.warning(
                "With several processes, an uneven last batch may hang: dataloader_drop_last is set to True."
            )
            self.dataloader_drop_last = True

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments as plain values."""
        found: dict[str, Any] = super().to_dict()
        return {
            name: value
            for name, value in found.items()
            if not (name in ("batch_sampler", "multi_dataset_batch_sampler") and callable(value))
        }


@dataclass
class SentenceTransformerTrainingArguments(BaseTrainingArguments):
    """Arguments of a SentenceTransformerTrainer."""


@dataclass
class CrossEncoderTrainingArguments(BaseTrainingArguments):
    """Arguments of a CrossEncoderTrainer."""


def _from_json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return otherwise
