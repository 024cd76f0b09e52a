"""A callback that tells the model's card what the training was."""

from typing import Any

from transformers import TrainerCallback


class ModelCardCallback(TrainerCallback):  # type: ignore[misc]
    """Note the settings that differ from the defaults, the losses and the scores."""

    def __init__(self, trainer: Any = None) -> None:
        self.trainer = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Note settings and losses."""
        if self.trainer is None:
            return
        data = self.trainer.model.model_card_data
        # without it, accelerate would forget the devices of the training that begins
        kept = {"use_configured_state": True}
        defaults = type(args)(output_dir="unused", accelerator_config=kept).to_dict()
        skipped = {"output_dir", "logging_dir", "run_name", "hub_token", "accelerator_config"}
        data.settings = {
            name: value for name, value in args.to_dict().items() if name not in skipped and defaults.get(name) != value
        }
        losses = self.trainer.loss
        data.set_losses(losses.values() if isinstance(losses, dict) else [losses])
        if args.hub_model_id and not data.model_id:
            data.set_model_id(args.hub_model_id)
        if not data.train_datasets and self.trainer.train_dataset is not None:
            named = self.trainer.train_dataset
            names = list(named) if isinstance(named, dict) else ["the data given"]
            data.train_datasets = [{"name": name} for name in names]

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: dict[str, float] | None = None, **kwargs: Any
    ) -> None:
        """Note scores."""
        if self.trainer is not None and metrics and self.trainer.evaluator is not None:
            found = {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
            data = self.trainer.model.model_card_data
            data.set_evaluation_metrics(self.trainer.evaluator, found, state.epoch or 0, state.global_step)
