"""`fit` on a model, and what old training code calls."""

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from munjang.errors import MissingExtra


class SentenceFitting:
    """`fit` of a SentenceTransformer."""

    def fit(
        self,
        train_objectives: Iterable[tuple[Any, Any]],
        evaluator: Any = None,
        epochs: int = 1,
        steps_per_epoch: int | None = None,
        scheduler: str = "WarmupLinear",
        warmup_steps: int = 10000,
        optimizer_class: Any = None,
        optimizer_params: dict[str, Any] | None = None,
        weight_decay: float = 0.01,
        evaluation_steps: int = 0,
        output_path: str | None = None,
        save_best_model: bool = True,
        max_grad_norm: float = 1,
        use_amp: bool = False,
        callback: Callable[[float, float, int], None] | None = None,
        show_progress_bar: bool = True,
        checkpoint_path: str | None = None,
        checkpoint_save_steps: int = 500,
        checkpoint_save_total_limit: int = 0,
        resume_from_checkpoint: bool = False,
    ) -> None:
        """Train on data loaders of InputExample, each with its loss."""
        trained, trainer = _trainer("SentenceTransformerTrainer")
        options = {name: value for name, value in locals().items() if name not in ("self", "trained", "trainer")}
        options["optimizer_params"] = optimizer_params or {"lr": 2e-5}
        trained(self, trainer, options.pop("train_objectives"), **options)

    old_fit = fit

    def smart_batching_collate(self, batch: list[Any]) -> tuple[list[dict[str, Any]], Any]:
        """Return the features of each column of InputExamples, and their labels."""
        import torch

        columns = zip(*(example.texts for example in batch), strict=True)
        features = [self.preprocess(list(column)) for column in columns]  # type: ignore[attr-defined]
        return features, torch.tensor([example.label for example in batch])


class CrossFitting:
    """`fit` of a CrossEncoder."""

    def fit(
        self,
        train_dataloader: Any,
        evaluator: Any = None,
        epochs: int = 1,
        loss_fct: Any = None,
        activation_fct: Any = None,
        scheduler: str = "WarmupLinear",
        warmup_steps: int = 10000,
        optimizer_class: Any = None,
        optimizer_params: dict[str, Any] | None = None,
        weight_decay: float = 0.01,
        evaluation_steps: int = 0,
        output_path: str | None = None,
        save_best_model: bool = True,
        max_grad_norm: float = 1,
        use_amp: bool = False,
        callback: Callable[[float, float, int], None] | None = None,
        show_progress_bar: bool = True,
    ) -> None:
        """Train on a data loader of InputExample."""
        trained, trainer = _trainer("CrossEncoderTrainer")
        name = "BinaryCrossEntropyLoss" if self.num_labels == 1 else "CrossEntropyLoss"  # type: ignore[attr-defined]
        loss = import_module("munjang.compat.cross_losses").ALL[name](self, activation_fn=activation_fct)
        skipped = ("self", "trained", "trainer", "name", "loss", "train_dataloader", "loss_fct", "activation_fct")
        options = {key: value for key, value in locals().items() if key not in (*skipped, "skipped")}
        options["optimizer_params"] = optimizer_params or {"lr": 2e-5}
        more = {"steps_per_epoch": None, "checkpoint_path": None, "checkpoint_save_steps": 500}
        trained(self, trainer, [(train_dataloader, loss)], checkpoint_save_total_limit=0, **more, **options)

    old_fit = fit

    def smart_batching_collate(self, batch: list[Any]) -> tuple[dict[str, Any], Any]:
        """Return the features of the pairs of InputExamples, and their labels."""
        import torch

        pairs = [tuple(example.texts) for example in batch]
        return self.preprocess(pairs), torch.tensor([example.label for example in batch])  # type: ignore[attr-defined]


def _trainer(name: str) -> tuple[Any, Any]:
    try:  # imported by name: these files import the models, which import this one
        fit = import_module("munjang.compat.training.fit").fit
        files = {"SentenceTransformerTrainer": "trainer", "CrossEncoderTrainer": "cross"}
        trainer = getattr(import_module(f"munjang.compat.training.{files[name]}"), name)
    except ImportError as error:
        raise MissingExtra("transformers, datasets and accelerate", "compat-train", "fit") from error
    return fit, trainer
