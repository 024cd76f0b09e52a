"""Collators under their names: rows of a dataset to features of each column, and labels."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

LABELS = ("label", "labels", "score", "scores")


@dataclass
class BaseDataCollator:
    """The base of all collators: labels, prompts and routes."""

    preprocess_fn: Callable[..., dict[str, Any]]
    valid_label_columns: list[str] = field(default_factory=lambda: list(LABELS))
    router_mapping: Any = field(default_factory=dict, repr=False)
    prompts: Any = field(default_factory=dict, repr=False)
    max_length: Any = field(default=None, repr=False)

    def columns(self, rows: list[dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
        """Return the names of the columns of inputs, and the batch with labels and the dataset's name."""
        names, batch = list(rows[0]), {}
        if "dataset_name" in names:
            names.remove("dataset_name")
            batch["dataset_name"] = rows[0]["dataset_name"]
        for name in self.valid_label_columns:
            if name in names:
                batch["label"] = self.labels([row[name] for row in rows])
                names.remove(name)
                break
        return names, batch

    def labels(self, values: list[Any]) -> Any:
        """Return labels as one tensor."""
        return torch.stack(values) if isinstance(values[0], torch.Tensor) else torch.tensor(values)

    def prompt_of(self, batch: dict[str, Any], column: str) -> str | None:
        """Return the prompt of a column."""
        prompts = self.prompts
        name = batch.get("dataset_name")
        if isinstance(prompts, dict) and name in prompts:
            prompts = prompts[name]
        elif isinstance(prompts, dict) and prompts and isinstance(next(iter(prompts.values())), dict):
            if name is None:
                raise ValueError(
                    "The prompts provided to the trainer are a nested dictionary, by dataset and column, but the "
                    f"dataset is a not a DatasetDict. Their keys are {list(prompts)!r}."
                )
            return None
        return prompts.get(column) if isinstance(prompts, dict) else prompts

    def task_of(self, batch: dict[str, Any], column: str) -> str | None:
        """Return the route of a column."""
        routes = self.router_mapping or {}
        if routes and isinstance(next(iter(routes.values())), dict):
            routes = routes.get(batch.get("dataset_name"), {})
        task: str | None = routes.get(column)
        return task


@dataclass
class SentenceTransformerDataCollator(BaseDataCollator):
    """Tokenize each column, longest text to longest text."""

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        if not features:
            return {}
        names, batch = self.columns(features)
        for name in names:
            task = self.task_of(batch, name)
            inputs = [row[name] for row in features]
            for key, value in self.preprocess_fn(inputs, prompt=self.prompt_of(batch, name), task=task).items():
                batch[f"{name}_{key}"] = value
            if task is not None:
                batch[f"{name}_task"] = task
        return batch


@dataclass
class CrossEncoderDataCollator(BaseDataCollator):
    """Keep the texts: a loss makes pairs of them."""

    def __post_init__(self) -> None:
        for name in ("prompts", "router_mapping"):
            given = getattr(self, name)
            if isinstance(given, dict) and any(isinstance(value, dict) for value in given.values()):
                raise ValueError(f"CrossEncoder {name} cannot be per-column: both texts of a pair are read together.")

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        if not features:
            return {}
        names, batch = self.columns(features)
        prompts = {self.prompt_of(batch, name) for name in names} - {None}
        if prompts:
            batch["prompt"] = prompts.pop()
        for name in names:
            batch[name] = [row[name] for row in features]
        return batch

    def labels(self, values: list[Any]) -> Any:
        """Return labels as one tensor; lists of different lengths as one tensor each."""
        if isinstance(values[0], (list, tuple)):
            return [torch.tensor(value) for value in values]
        return super().labels(values)
