"""sentence-transformers' CrossEncoder over ours."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from munjang import checkpoint, cross_encoder
from munjang.compat import pools
from munjang.compat.card import card_data
from munjang.compat.fitting import CrossFitting
from munjang.compat.gaps import HEADS
from munjang.compat.loading import asked_dtype, asked_length, check_fixed, find_folder
from munjang.compat.model import Model
from munjang.compat.modules.transformer import Transformer
from munjang.compat.renames import cross_encoder_init_args_decorator, cross_encoder_predict_rank_args_decorator
from munjang.compat.util import batch_to_device
from munjang.errors import InputError

Pairs = list[tuple[str, str]]
logger = logging.getLogger(__name__)


class CrossEncoder(CrossFitting, Model[cross_encoder.CrossEncoder]):
    """A scorer of pairs with the methods of sentence_transformers.CrossEncoder; `facade` is munjang's CrossEncoder."""

    default_huggingface_organization = "cross-encoder"
    model_type = "CrossEncoder"

    @cross_encoder_init_args_decorator
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str] | None = None,
        num_labels: int | None = None,
        max_length: int | None = None,
        activation_fn: Callable[[Tensor], Tensor] | None = None,
        device: str | torch.device | None = None,
        *,
        modules: Any = None,
        prompts: dict[str, str] | None = None,
        default_prompt_name: str | None = None,
        cache_folder: str | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        local_files_only: bool = False,
        token: bool | str | None = None,
        model_kwargs: dict[str, Any] | None = None,
        processor_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        model_card_data: Any = None,
        backend: str = "torch",
        keep_in_fp32_modules: list[str] | None = None,
    ) -> None:
        rest = dict(config_kwargs or {})
        num_labels = rest.pop("num_labels", None) if num_labels is None else num_labels
        check_fixed(config_kwargs=rest, backend=backend, keep_in_fp32_modules=keep_in_fp32_modules)
        if modules is not None:
            raise InputError(f"munjang.compat does not cover CrossEncoder(modules=...). {HEADS}")
        organization = self.default_huggingface_organization
        folder = find_folder(model_name_or_path, organization, cache_folder, revision, token, local_files_only)
        length = asked_length(processor_kwargs, max_length)
        where = None if device is None else str(device)
        facade = _load(folder, num_labels, where, asked_dtype(model_kwargs, folder))
        default_prompt_name = default_prompt_name or facade.model.default_prompt_name
        block = Transformer.around(facade.model)
        super().__init__([block], facade, {**facade.prompts, **(prompts or {})}, default_prompt_name)
        object.__setattr__(self, "_activation", None)
        if length is not None:
            self.max_seq_length = length
        if activation_fn is not None:
            self.activation_fn = activation_fn
        self.model_card_data = card_data(self, model_card_data, model_name_or_path)

    def _compose(self) -> cross_encoder.CrossEncoder:
        stored = self[0].stored
        facade = cross_encoder.CrossEncoder(stored, *self._wanted)
        facade.activation = self._activation or facade.activation
        return facade

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_activation": self.activation_fn}

    @cross_encoder_predict_rank_args_decorator
    def predict(
        self,
        inputs: Any,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Callable[[Tensor], Tensor] | None = None,
        apply_softmax: bool | None = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        pool: pools.Pool | None = None,
        chunk_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Score pairs: return an array [B] or [B, labels], a tensor, or a list of tensors; for one pair, its score.

        `batch_size` and `chunk_size` never change a result: batches are made by tokens to suit the device.
        """
        self._check_call("predict", batch_size, device, pool, kwargs)
        inputs = _listed(inputs)
        is_single = self.is_singular_input(inputs)
        first = self._prompt(prompt, prompt_name)
        pairs = [inputs] if isinstance(inputs, str) else self._prompted([inputs] if is_single else inputs, first)
        where = "cpu" if pool is not None or isinstance(device, list) else self.device
        if isinstance(inputs, str):  # one text, which no pair is made of
            self.facade  # noqa: B018  # makes the weights ready
            with torch.inference_mode():
                logits = self(batch_to_device(self.preprocess([first + inputs]), self.device))["scores"].float()
                scores = (activation_fn or self.activation_fn)(logits)
            scores = scores[:, 0] if self.num_labels == 1 else scores
        elif pairs:
            found = pools.facade_of(self, pool).predict(
                pairs, activation=activation_fn, prompt="", progress=self._progress(show_progress_bar)
            )
            scores = torch.from_numpy(found)
            scores = scores.softmax(1) if apply_softmax and scores.ndim > 1 else scores
        else:
            scores = torch.tensor([])
        if convert_to_tensor or not convert_to_numpy:
            rows: Any = scores.to(where) if convert_to_tensor else list(scores.to(where))
        else:
            rows = scores.cpu().numpy() if pairs else np.array([])
        return rows[0] if is_single else rows

    @cross_encoder_predict_rank_args_decorator
    def rank(
        self,
        query: str,
        documents: Any,
        top_k: int | None = None,
        return_documents: bool = False,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        activation_fn: Callable[[Tensor], Tensor] | None = None,
        device: Any = None,
        pool: pools.Pool | None = None,
        chunk_size: int | None = None,
        **kwargs: Any,
    ) -> list[dict[str, Any]]:
        """Rank documents for one query; return {"corpus_id", "score"} and, if asked, "text", best first."""
        if self.num_labels != 1:
            raise InputError(f"Ranking needs one score per pair; this model has {self.num_labels} labels. Use predict.")
        scores = self.predict(
            [(query, document) for document in documents],
            prompt_name,
            prompt,
            batch_size,
            show_progress_bar,
            activation_fn,
            device=device,
            pool=pool,
            chunk_size=chunk_size,
            **kwargs,
        ).tolist()
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:top_k]
        hits = [{"corpus_id": place, "score": scores[place]} for place in order]
        return [{**hit, "text": documents[hit["corpus_id"]]} for hit in hits] if return_documents else hits

    @property
    def _settings(self) -> cross_encoder.CrossEncoder:
        """Return ours for its settings: `facade` makes it ready to predict, which would turn dropout off."""
        facade: cross_encoder.CrossEncoder = self._facade or self.facade
        return facade

    @property
    def num_labels(self) -> int:
        """Return the number of scores per pair."""
        return self._settings.num_labels

    @property
    def activation_fn(self) -> Any:
        """Return the function from logits to scores that is used if a call gives none."""
        return self._settings.activation

    @activation_fn.setter
    def activation_fn(self, function: Any) -> None:
        if not callable(function):
            raise InputError(f"activation_fn should be a function of a tensor, not {type(function).__name__}.")
        self._settings.activation = function

    @property
    def default_activation_function(self) -> Any:
        """Return `activation_fn`, by its older name."""
        return self.activation_fn

    def get_default_activation_fn(self) -> nn.Module:
        """Return the checkpoint's activation, or sigmoid for one label and identity for several."""
        return self._settings.model.activation or (nn.Sigmoid() if self.num_labels == 1 else nn.Identity())

    @property
    def max_length(self) -> Any:
        """Return `max_seq_length`, by its older name."""
        return self.max_seq_length

    @max_length.setter
    def max_length(self, tokens: int) -> None:
        self.max_seq_length = tokens

    def is_singular_input(self, inputs: Any) -> bool:
        """Tell whether this is one pair, not several."""
        inputs = _listed(inputs)
        if isinstance(inputs, np.ndarray):
            return inputs.ndim == 1 and len(inputs) > 0
        return not isinstance(inputs, (list, tuple)) or (
            len(inputs) > 0 and not isinstance(inputs[0], (list, tuple, np.ndarray))
        )

    def _prompted(self, inputs: Any, prompt: str) -> Pairs:
        """Return the pairs with the prompt before the first text of each."""
        rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in inputs]
        first, second, _ = cross_encoder.split_pairs(rows)
        return [(prompt + a, b) for a, b in zip(first, second, strict=True)]

    def _write_folder(self, path: Path) -> None:
        self.facade.prompts, self.facade.default_prompt_name = self.prompts, self.default_prompt_name
        self.facade.save(path)


def _listed(inputs: Any) -> Any:
    """Return a column of a dataset, a Series or an iterator as a list; lists, arrays and single inputs as they are."""
    is_plain = isinstance(inputs, (str, bytes, dict, list, tuple, np.ndarray))
    return inputs if is_plain or not hasattr(inputs, "__iter__") else list(inputs)


def _load(folder: Any, num_labels: int | None, device: str | None, dtype: str) -> cross_encoder.CrossEncoder:
    """Load the scorer of a folder; if it has no head, add a new one with `num_labels` outputs."""
    if checkpoint.kind(folder) == "cross":
        facade = cross_encoder.CrossEncoder.load(folder, device, dtype)
        if num_labels not in (None, facade.num_labels):
            raise InputError(
                f"{folder} has {facade.num_labels} labels, not {num_labels}. "
                f"munjang.CrossEncoder.create(path, num_labels={num_labels}) adds a new head to its encoder."
            )
        return facade
    if num_labels is None:
        logger.warning("%s is an encoder without a head: one with a new, untrained head of 1 label is made.", folder)
    return cross_encoder.CrossEncoder.create(folder, num_labels or 1, device, dtype)
