"""SentenceTransformerTrainer: transformers' Trainer (extra) over our network and objectives.

Callbacks, arguments, schedules, checkpoints and logging are transformers' own, so that they mean what they mean there;
what is computed is ours.
"""

import logging
import os
import re
from collections.abc import Callable
from typing import Any

import torch
from datasets import DatasetDict, IterableDataset
from torch import nn
from transformers import Trainer

from munjang.compat.renames import deprecated_kwargs
from munjang.compat.sentence_transformer import SentenceTransformer
from munjang.compat.training.arguments import BaseTrainingArguments, SentenceTransformerTrainingArguments
from munjang.compat.training.card import ModelCardCallback
from munjang.compat.training.collator import BaseDataCollator, SentenceTransformerDataCollator
from munjang.compat.training.loaders import Loaders

logger = logging.getLogger(__name__)
FEATURE = "_input_ids"
RESERVED = {"return_loss", "dataset_name"}
Losses = Any  # a loss, losses by dataset, or functions of the model that give them


class BaseTrainer(Loaders, Trainer):  # type: ignore[misc]
    """The base of the trainers of both kinds of models."""

    model_class: type = nn.Module
    data_collator_class: type[BaseDataCollator] = BaseDataCollator
    training_args_class: type[BaseTrainingArguments] = BaseTrainingArguments
    takes_streams = True
    loss: Any
    evaluator: Any

    @deprecated_kwargs(tokenizer="processing_class")
    def __init__(
        self,
        model: Any = None,
        args: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        loss: Losses = None,
        evaluator: Any = None,
        data_collator: Any = None,
        processing_class: Any = None,
        model_init: Callable[[], Any] | None = None,
        compute_metrics: Any = None,
        callbacks: list[Any] | None = None,
        optimizers: tuple[Any, Any] = (None, None),
        optimizer_cls_and_kwargs: Any = None,
        preprocess_logits_for_metrics: Any = None,
    ) -> None:
        if args is None:
            args = self.training_args_class(output_dir="tmp_trainer")
        elif not isinstance(args, self.training_args_class):
            raise ValueError(
                f"Please pass an instance of `{self.training_args_class.__name__}` as the `args` argument."
            )
        self.model_init = model_init
        if model is None:
            if model_init is None:
                raise RuntimeError(f"`{type(self).__name__}` requires either a `model` or `model_init` argument")
            model = self.call_model_init()
        if eval_dataset is None and evaluator is None and args.eval_strategy != "no":
            raise ValueError(
                f"You have set `args.eval_strategy` to {args.eval_strategy}, but you didn't provide an `eval_dataset` "
                f"or an `evaluator`. Either provide one to `{type(self).__name__}`, or set `args.eval_strategy='no'`."
            )
        train_dataset, eval_dataset = (_as_dict(each) for each in (train_dataset, eval_dataset))
        for name, dataset in (("train", train_dataset), ("eval", eval_dataset)):
            _check_features(name, dataset)
            parts = dataset.values() if isinstance(dataset, dict) else [dataset]
            if (
                isinstance(dataset, dict)
                and any(isinstance(part, IterableDataset) for part in parts)
                and name == "train"
            ):
                raise ValueError("A DatasetDict containing an IterableDataset is not compatible with the trainer.")
            if not self.takes_streams and any(isinstance(part, IterableDataset) for part in parts):
                raise ValueError(
                    f"{type(self).__name__} does not support an IterableDataset for the `{name}_dataset`. "
                    "Please convert the dataset to a `Dataset` or `DatasetDict` before passing it to the trainer."
                )
        if data_collator is None:
            data_collator = self.data_collator_class(
                preprocess_fn=model.preprocess, router_mapping=args.router_mapping, prompts=args.prompts
            )
        super().__init__(
            model=None if model_init else model,
            args=args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset if eval_dataset is not None or evaluator is None else "dummy",
            model_init=model_init,
            compute_metrics=compute_metrics,
            callbacks=callbacks,
            optimizers=optimizers,
            optimizer_cls_and_kwargs=optimizer_cls_and_kwargs,
            preprocess_logits_for_metrics=preprocess_logits_for_metrics,
        )
        self.eval_dataset = eval_dataset
        self.can_return_loss = True
        loss = self.get_default_loss(self.model) if loss is None else loss
        if isinstance(loss, dict):
            self._check_losses(loss, {"train": train_dataset, "eval": eval_dataset})
            self.loss = {name: self.prepare_loss(each, self.model) for name, each in loss.items()}
        else:
            self.loss = self.prepare_loss(loss, self.model)
        if evaluator is not None and isinstance(evaluator, (list, tuple)):
            from munjang.compat.evaluation import SequentialEvaluator

            evaluator = SequentialEvaluator(list(evaluator))
        self.evaluator = evaluator
        self.train_dataset = self.preprocess_dataset(train_dataset, "train")
        self.eval_dataset = self.preprocess_dataset(eval_dataset, "eval")
        self._parts: dict[str, dict[str, list[float]]] = {"train": {}, "eval": {}}
        if hasattr(self.model, "model_card_data"):
            self.add_callback(ModelCardCallback(self))

    def get_default_loss(self, model: Any) -> nn.Module:
        """Return the loss where none is given."""
        raise NotImplementedError

    @staticmethod
    def _check_losses(losses: dict[str, Any], datasets: dict[str, Any]) -> None:
        for name, dataset in datasets.items():
            if dataset is None:
                continue
            if not isinstance(dataset, dict):
                raise ValueError(
                    f"If the provided `loss` is a dict, then the `{name}_dataset` must be a `DatasetDict`."
                )
            if missing := sorted(set(dataset) - set(losses)):
                raise ValueError(
                    "If the provided `loss` is a dict, then all keys from the "
                    f"`{name}_dataset` dictionary must occur in `loss` also. Currently, {missing} "
                    f"occur{'s' if len(missing) == 1 else ''} in `{name}_dataset` but not in `loss`."
                )

    def prepare_loss(self, loss: Any, model: Any) -> nn.Module:
        """Return a loss on the model's device; a function of the model is called."""
        made: nn.Module = loss if isinstance(loss, nn.Module) else loss(model)
        return made.to(model.device)

    def override_model_in_loss(self, loss: Any, model: Any) -> Any:
        """Put the wrapped model (several processes, compiled) into a loss and the losses inside."""
        for name, child in loss.named_children():
            if name == "model" and isinstance(child, self.model_class):
                loss.model = model
            elif isinstance(child, nn.Module) and not isinstance(child, self.model_class):
                setattr(loss, name, self.override_model_in_loss(child, model))
        return loss

    def call_model_init(self, trial: Any = None) -> Any:
        """Make a new model, for the losses too."""
        model = super().call_model_init(trial=trial)
        if hasattr(self, "loss"):
            losses = self.loss if isinstance(self.loss, dict) else {"": self.loss}
            for each in losses.values():
                self.override_model_in_loss(each, model)
        return model

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a batch."""
        inputs = dict(inputs)
        name = inputs.pop("dataset_name", None)
        loss_fn = self.loss[name] if isinstance(self.loss, dict) and name else self.loss
        if model is self.model_wrapped and getattr(loss_fn, "model", model) is not model:
            loss_fn = self.override_model_in_loss(loss_fn, model)
        loss = self.loss_of(loss_fn, inputs)
        if isinstance(loss, dict):
            kind = "train" if self.model.training else "eval"
            for part, value in loss.items():
                self._parts[kind].setdefault(part, []).append(float(value.detach()))
            loss = torch.stack(list(loss.values())).sum()
        return (loss, {}) if return_outputs else loss

    def loss_of(self, loss: Any, inputs: dict[str, Any]) -> Any:
        """Return what a loss says of a batch."""
        features, labels = self.collect_features(inputs)
        return loss(features, labels)

    def collect_features(self, inputs: dict[str, Any]) -> tuple[list[Any], Any]:
        """Return the features of each column, and labels."""
        prefixes = dict.fromkeys(
            name[: -len(suffix) + 1]
            for name in inputs
            for suffix in (FEATURE, "_sentence_embedding")
            if name.endswith(suffix)
        )
        columns = [
            {name[len(prefix) :]: value for name, value in inputs.items() if name.startswith(prefix)}
            for prefix in prefixes
        ]
        return columns, inputs.get("label")

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log, with the parts of a loss that has several."""
        kind = "train" if "loss" in logs else "eval" if "eval_loss" in logs else None
        if kind is not None and self._parts[kind]:
            prefix = "eval_" if kind == "eval" else ""
            means = {f"{prefix}{name}": round(sum(each) / len(each), 4) for name, each in self._parts[kind].items()}
            logs, self._parts[kind] = {**logs, **means}, {}
        super().log(logs, start_time)

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: list[str] | None = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """Return the loss on a dataset, and what the evaluator says."""
        if eval_dataset is not None and not isinstance(eval_dataset, str):
            eval_dataset = self.preprocess_dataset(_as_dict(eval_dataset), "eval")
        found: dict[str, float] = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix)
        return found

    def evaluation_loop(
        self,
        dataloader: Any,
        description: str,
        prediction_loss_only: bool | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> Any:
        """Run over a dataset, then run the evaluator: once, after the first of several datasets."""
        output = super().evaluation_loop(dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix)
        if self.evaluator is None:
            return output
        if self.is_in_train and isinstance(self.eval_dataset, dict) and metric_key_prefix.startswith("eval_"):
            if metric_key_prefix[5:] != next(iter(self.eval_dataset)):
                return output
            metric_key_prefix = "eval"
        folder = os.path.join(self.args.output_dir, "eval") if self.is_world_process_zero() else None
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        state = self.state
        metrics = self.evaluator(self.model, output_path=folder, epoch=state.epoch, steps=state.global_step)
        metrics = metrics if isinstance(metrics, dict) else {"evaluator": metrics}
        prefix = f"{metric_key_prefix}_"
        output.metrics.update(
            {name if name.startswith(prefix) else prefix + name: value for name, value in metrics.items()}
        )
        return output

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        output_dir = output_dir or self.args.output_dir
        os.makedirs(output_dir, exist_ok=True)
        self.model.save_pretrained(output_dir)
        torch.save(self.args, os.path.join(output_dir, "training_args.bin"))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        self.model.load_state_dict(self.model_class(resume_from_checkpoint, device="cpu").state_dict())

    def _load_best_model(self) -> None:
        if self.state.best_model_checkpoint is None:
            return
        logger.info("Loading best model from %s (%s).", self.state.best_model_checkpoint, self.state.best_metric)
        self._load_from_checkpoint(self.state.best_model_checkpoint)

    def create_model_card(
        self, language: Any = None, license: str | None = None, tags: Any = None, **kwargs: Any
    ) -> None:
        """Write the model's card into the output folder."""
        data = self.model.model_card_data
        for method, value in ((data.set_language, language), (data.set_license, license), (data.add_tags, tags)):
            if value:
                method(value)
        with open(os.path.join(self.args.output_dir, "README.md"), "w", encoding="utf-8") as file:
            file.write(data.text(self.model))

    def get_optimizer_cls_and_kwargs(self, args: Any, model: Any = None) -> tuple[Any, Any]:
        """Return the optimizer over the parameters of model and losses, by weight decay and learning rate."""
        holder = nn.ModuleDict(self.loss) if isinstance(self.loss, dict) else self.loss
        kind, options = super().get_optimizer_cls_and_kwargs(args, holder)
        decayed = set(self.get_decay_parameter_names(holder))
        if {"params", "model", "optimizer_dict"} & set(options):
            return kind, options
        named = {name: each for name, each in holder.named_parameters() if each.requires_grad}
        rates: dict[str, float] = {}
        for pattern, rate in args.learning_rate_mapping.items():
            found = [name for name in named if re.search(pattern, name)]
            if not found:
                raise ValueError(
                    f"No parameters found matching the pattern '{pattern}' in the model. "
                    "Please check the pattern and ensure it matches some of the model's parameters."
                )
            rates |= dict.fromkeys(found, rate)
        groups: dict[tuple[bool, float | None], list[nn.Parameter]] = {(True, None): [], (False, None): []}
        for name, each in named.items():
            groups.setdefault((name in decayed, rates.get(name)), []).append(each)
        options["optimizer_dict"] = [
            {
                "params": parameters,
                "weight_decay": args.weight_decay if is_decayed else 0.0,
                **({} if rate is None else {"lr": rate}),
            }
            for (is_decayed, rate), parameters in groups.items()
        ]
        return kind, options

    def preprocess_dataset(self, dataset: Any = None, dataset_name: str | None = None) -> Any:
        """Check the columns of a dataset, and name each of several where losses or prompts go by names."""
        if dataset is None:
            return None
        datasets = dataset.items() if isinstance(dataset, dict) else [(dataset_name, dataset)]
        for name, each in datasets:
            if overlap := sorted(set(each.column_names or []) & RESERVED):
                raise ValueError(
                    f"The following column names are invalid in your {name} dataset: {overlap}. "
                    "Avoid using these column names, as they are reserved for internal use."
                )
        by_name = isinstance(self.loss, dict) or isinstance(self.args.prompts, dict) or self.args.router_mapping
        if isinstance(dataset, DatasetDict) and by_name:
            return DatasetDict({name: _named(each, name) for name, each in dataset.items()})
        return dataset


class SentenceTransformerTrainer(BaseTrainer):
    """Train a SentenceTransformer."""

    model_class = SentenceTransformer
    data_collator_class = SentenceTransformerDataCollator
    training_args_class = SentenceTransformerTrainingArguments

    def get_default_loss(self, model: Any) -> nn.Module:
        """Return CoSENTLoss."""
        from munjang.compat import losses

        made: nn.Module = losses.ALL["CoSENTLoss"](model)
        return made


def _as_dict(dataset: Any) -> Any:
    is_plain = isinstance(dataset, dict) and not isinstance(dataset, DatasetDict)
    return DatasetDict(dataset) if is_plain else dataset


def _check_features(name: str, dataset: Any) -> None:
    if isinstance(dataset, IterableDataset) and dataset.column_names is None:
        raise ValueError(
            f"The provided `{name}_dataset` must have Features. Specify them with "
            f"{name}_dataset = {name}_dataset.cast(Features(...))."
        )


def _named(dataset: Any, name: str) -> Any:
    """Return a dataset whose rows say its name, behind the transform that it has already."""
    format = getattr(dataset, "format", None) or {}
    transform = (format.get("format_kwargs") or {}).get("transform") if format.get("type") == "custom" else None

    def with_name(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        batch = transform(batch) if transform else batch
        return {**batch, "dataset_name": [name] * len(next(iter(batch.values()), []))}

    copied = dataset.with_format("python") if hasattr(dataset, "with_format") else dataset
    copied = copied.select(range(len(copied)))
    copied.set_transform(with_name)
    return copied
