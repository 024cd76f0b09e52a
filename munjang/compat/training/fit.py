"""`fit` of older versions: data loaders of InputExample and their losses, trained by the trainer of today."""

import logging
from collections.abc import Callable, Iterable
from typing import Any

from datasets import Dataset, DatasetDict
from transformers import TrainerCallback

from munjang.errors import InputError

logger = logging.getLogger(__name__)
SCHEDULES = {
    "constantlr": "constant",
    "warmupconstant": "constant_with_warmup",
    "warmuplinear": "linear",
    "warmupcosine": "cosine",
    "warmupcosinewithhardrestarts": "cosine_with_restarts",
}


class EvaluationCallback(TrainerCallback):  # type: ignore[misc]
    """Call `callback(score, epoch, step)` after every evaluation."""

    def __init__(self, evaluator: Any, callback: Callable[[float, float, int], None]) -> None:
        self.evaluator, self.callback = evaluator, callback

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any) -> None:
        """Call it with the main score."""
        name = getattr(self.evaluator, "primary_metric", None) or "evaluator"
        self.callback((metrics or {}).get(f"eval_{name}", 0.0), state.epoch, state.global_step)


def dataset_of(loader: Iterable[Any]) -> Dataset:
    """Return the examples of a data loader as columns sentence_0, sentence_1, ..., label."""
    examples = getattr(loader, "dataset", None)
    if examples is None:
        examples = [example for batch in loader for example in batch]
    rows = [examples[place] for place in range(len(examples))]
    if not rows:
        raise InputError("A data loader of fit has no examples.")
    count = len(rows[0].texts)
    columns: dict[str, list[Any]] = {f"sentence_{at}": [row.texts[at] for row in rows] for at in range(count)}
    if count == 0:
        raise InputError("An InputExample of fit has no texts.")
    labels = [row.label for row in rows]
    return Dataset.from_dict({**columns, "label": labels})


def fit(model: Any, trainer: Any, objectives: Iterable[tuple[Any, Any]], **options: Any) -> None:
    """Train with a trainer of the model's kind."""
    loaders, losses = zip(*objectives, strict=True)
    names = [f"_dataset_{place}" for place in range(len(loaders))]
    datasets = dict(zip(names, map(dataset_of, loaders), strict=True))
    sizes = {getattr(loader, "batch_size", None) or 8 for loader in loaders}
    if len(sizes) > 1:
        logger.warning("The data loaders have batches of %s; all are trained in batches of %s.", sizes, min(sizes))
    evaluator, output = options["evaluator"], options["output_path"]
    steps, evaluation_steps = options["steps_per_epoch"], options["evaluation_steps"]
    schedule = str(options["scheduler"]).lower()
    if schedule not in SCHEDULES:
        raise ValueError(
            f"Unknown scheduler {options['scheduler']}; choose from WarmupLinear, WarmupCosine, ConstantLR."
        )
    rate = options["optimizer_params"].get("lr", 2e-5)
    arguments = trainer.training_args_class(
        output_dir=options["checkpoint_path"] or "checkpoints/model",
        per_device_train_batch_size=min(sizes),
        per_device_eval_batch_size=min(sizes),
        num_train_epochs=options["epochs"],
        max_steps=-1 if steps is None else int(steps * options["epochs"]),
        warmup_steps=options["warmup_steps"],
        lr_scheduler_type=SCHEDULES[schedule],
        learning_rate=rate,
        weight_decay=options["weight_decay"],
        max_grad_norm=options["max_grad_norm"],
        eval_strategy="no" if evaluator is None else "steps" if evaluation_steps else "epoch",
        eval_steps=evaluation_steps or None,
        save_strategy="steps" if options["checkpoint_path"] else "no",
        save_steps=options["checkpoint_save_steps"],
        save_total_limit=options["checkpoint_save_total_limit"] or None,
        disable_tqdm=not options["show_progress_bar"],
        fp16=options["use_amp"] and model.device.type == "cuda",
        multi_dataset_batch_sampler="round_robin",
        report_to="none",
    )
    callbacks = (
        [] if evaluator is None or options["callback"] is None else [EvaluationCallback(evaluator, options["callback"])]
    )
    made = trainer(
        model=model,
        args=arguments,
        train_dataset=DatasetDict(datasets) if len(datasets) > 1 else datasets[names[0]],
        loss=dict(zip(names, losses, strict=True)) if len(datasets) > 1 else losses[0],
        evaluator=evaluator,
        callbacks=callbacks,
    )
    made.train()
    if output is not None:
        model.save(output)
