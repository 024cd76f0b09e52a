"""CrossEncoderTrainer: the trainer of scorers of pairs."""

from typing import Any

from torch import nn

from munjang.compat.cross_encoder import CrossEncoder
from munjang.compat.training.arguments import CrossEncoderTrainingArguments
from munjang.compat.training.collator import CrossEncoderDataCollator
from munjang.compat.training.trainer import BaseTrainer


class CrossEncoderTrainer(BaseTrainer):
    """Train a CrossEncoder."""

    model_class = CrossEncoder
    data_collator_class = CrossEncoderDataCollator
    training_args_class = CrossEncoderTrainingArguments
    takes_streams = False

    def get_default_loss(self, model: Any) -> nn.Module:
        """Return the binary cross-entropy for one label, the cross-entropy for several."""
        from munjang.compat import cross_losses

        name = "BinaryCrossEntropyLoss" if model.num_labels == 1 else "CrossEntropyLoss"
        made: nn.Module = cross_losses.ALL[name](model)
        return made

    def collect_features(self, inputs: dict[str, Any]) -> tuple[list[Any], Any]:
        """Return the texts of each column, and labels."""
        labels = inputs.pop("label", None)
        return list(inputs.values()), labels

    def loss_of(self, loss: Any, inputs: dict[str, Any]) -> Any:
        """Return what a loss says of a batch, with the prompt if it takes one."""
        prompt, task = inputs.pop("prompt", None), inputs.pop("task", None)
        columns, labels = self.collect_features(inputs)
        if prompt is None and task is None:
            return loss(columns, labels)
        return loss(columns, labels, prompt=prompt, task=task)
