"""Collators under their names: rows of a dataset to features of each column, and labels."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from munjang.compat.renames import warn_once

logger = logging.getLogger(__name__)
LABELS = ("label", "labels", "score", "scores")


# Where a column of this name is expected, as the losses take columns by their places
ORDERS = ("anchor positive negative", "question answer", "query response", "hypothesis entailment contradiction")
EXPECTED_PLACES = {name: place for order in ORDERS for place, name in enumerate(order.split())}


@dataclass
class BaseDataCollator:
    """Tokenize each column, longest text to longest text; labels, prompts and routes are what all collators share."""

    preprocess_fn: Callable[..., dict[str, Any]]
    valid_label_columns: list[str] = field(default_factory=lambda: list(LABELS))
    router_mapping: Any = field(default_factory=dict, repr=False)
    prompts: Any = field(default_factory=dict, repr=False)
    max_length: Any = field(default=None, repr=False)
    _warned_columns: set[tuple[str, ...]] = field(default_factory=set, init=False, repr=False)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        if not features:
            return {}
        names, batch = self.columns(features)
        routes, prompts = self._resolve_router_mapping(batch), self._resolve_prompts(batch)
        ids = [name for name in names if name == "id" or name.endswith(("_id", "_ids", "_idx"))]
        if ids:
            warn_once(
                f"Column(s) {ids} look like ID columns, but they will be tokenized and trained on as text. Resolve "
                "them to their values first, with munjang.compat.util.resolve_ids, or remove them from the dataset."
            )
        for place, name in enumerate(names):
            task = self._get_task_for_column(name, place, routes)
            options: dict[str, Any] = {"prompt": self._get_prompt_for_column(prompts, name), "task": task}
            longest = self._get_max_length_for_task(task)
            if longest is not None:
                options["max_length"] = longest
            for key, value in self.preprocess_fn([row[name] for row in features], **options).items():
                batch[f"{name}_{key}"] = value
            if task is not None:
                batch[f"{name}_task"] = task
        return batch

    def columns(self, rows: list[dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
        """Return the names of the columns of inputs, and the batch with labels and the dataset's name."""
        names, batch = list(rows[0]), {}
        if "dataset_name" in names:
            names.remove("dataset_name")
            batch["dataset_name"] = rows[0]["dataset_name"]
        if tuple(names) not in self._warned_columns:
            self.maybe_warn_about_column_order(names)
        for name in self.valid_label_columns:
            if name in names:
                batch["label"] = self.labels([row[name] for row in rows])
                names.remove(name)
                break
        return names, batch

    def labels(self, values: list[Any]) -> Any:
        """Return labels as one tensor."""
        return torch.stack(values) if isinstance(values[0], torch.Tensor) else torch.tensor(values)

    def maybe_warn_about_column_order(self, column_names: list[str]) -> None:
        """Warn once where columns stand in another order than their names suggest."""
        for name, place in EXPECTED_PLACES.items():
            if name in column_names and column_names.index(name) != place:
                order = next(order.split() for order in ORDERS if name in order.split())
                logger.warning(
                    "Column %r is at index %d, whereas a column with this name is usually expected at index %d. Losses "
                    "take columns by their places: dataset = dataset.select_columns(%s)",
                    *(name, column_names.index(name), place, order),
                )
                break
        self._warned_columns.add(tuple(column_names))

    def _resolve_prompts(self, batch: dict[str, Any]) -> Any:
        """Return the prompts of a batch: one, or one for each column."""
        prompts = self.prompts
        if not isinstance(prompts, dict) or not prompts:
            return prompts
        if batch.get("dataset_name") in prompts:
            return prompts[batch["dataset_name"]]
        if not isinstance(next(iter(prompts.values())), dict):
            return prompts
        if "dataset_name" not in batch:
            raise ValueError(
                "The prompts provided to the trainer are a nested dictionary. In this setting, the first level of the "
                "dictionary should map to dataset names and the second level to column names. However, as the provided "
                "dataset is a not a DatasetDict, no dataset names can be inferred. The keys to the provided prompts "
                f"dictionary are {list(prompts)!r}"
            )
        return {}

    def _get_prompt_for_column(self, prompts: Any, column_name: str) -> str | None:
        return prompts.get(column_name) if isinstance(prompts, dict) else prompts

    def _resolve_router_mapping(self, batch: dict[str, Any]) -> dict[str, str]:
        """Return the route of each column of a batch."""
        routes = self.router_mapping or {}
        if routes and isinstance(next(iter(routes.values())), dict):
            routes = routes.get(batch.get("dataset_name"), {})
        return dict(routes)

    def _get_task_for_column(self, column_name: str, column_position: int, routes: dict[str, str]) -> str | None:
        return routes.get(column_name)

    def _get_max_length_for_task(self, task: str | None) -> int | None:
        lengths = self.max_length
        return lengths if isinstance(lengths, int) else lengths.get(task) if isinstance(lengths, dict) else None


@dataclass
class SentenceTransformerDataCollator(BaseDataCollator):
    """The collator of SentenceTransformerTrainer."""


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
        found = self._resolve_prompts(batch)
        prompts = {self._get_prompt_for_column(found, name) for name in names} - {None}
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
