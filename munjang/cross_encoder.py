"""CrossEncoder: pairs of texts to scores, both texts read together.

>>> from munjang import CrossEncoder
>>> scorer = CrossEncoder.load()  # the bundled Korean-English re-ranker; or a folder, or a Hub name
>>> scorer.rank("How fast is light?", ["A feather is light.", "The speed of light is 300,000 km a second."])[0].text
'The speed of light is 300,000 km a second.'
"""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import torch
from torch import Tensor, nn

from munjang import checkpoint
from munjang.engine.executor import DTYPES, Executor, apart, pick_device, pick_dtype
from munjang.engine.pairs import PairEngine
from munjang.engine.replicas import Devices, Replicas, names_of, place_model
from munjang.errors import InputError, MunjangError, TruncationWarning, unknown
from munjang.nn import heads
from munjang.nn.network import PairNetwork, new_head
from munjang.text.inputs import as_texts, pick_prompt
from munjang.types import Floats, Hit

SETTINGS = ("prompts", "default_prompt_name", "activation", "max_length")  # what may change after loading
Activation = str | nn.Module | Callable[[Tensor], Tensor]


class CrossEncoder:
    """A scorer of pairs. Any number of threads may use one at once; it pickles as its path, options and settings."""

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        self.model = model
        self.network = model.network.to_compute(device, dtype)
        self.tokenizer = model.tokenizer
        self.device, self.dtype = device, dtype
        self.prompts: dict[str, str] = dict(model.prompts)
        self.default_prompt_name = model.default_prompt_name
        self.num_labels = checkpoint.num_labels_of(model)
        # the checkpoint's own, else a probability for one label and raw logits for several
        self.activation = model.activation or (nn.Sigmoid() if self.num_labels == 1 else nn.Identity())
        self._engine = PairEngine(
            self.network, self.tokenizer, Executor(self.network, device, threads), self.num_labels
        )
        self._options: tuple[Any, ...] | None = None

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        device: Devices = None,
        dtype: str | None = None,
        threads: int | None = None,
    ) -> "CrossEncoder":
        """A cross-encoder from a folder or a Hub name; none: the bundled Korean-English re-ranker.

        A bare name is that of a bundled one, or one of the organization `cross-encoder` on the Hub.

        `device` may be a list: `predict`, `rank` and `rank_many` share many pairs among a process for each (tested
        with processes on a CPU, not measured on several GPUs); all else is computed on the first. Weights that are
        changed after loading are changed on the first alone.
        """
        path = checkpoint.default("cross") if path is None else path
        folder = checkpoint.resolve(path, checkpoint.CROSS_HUB)
        devices, bound_dtype = place_model(folder, device, dtype)
        with Replicas(_engine_at, devices, (os.path.abspath(folder), bound_dtype, threads)) as replicas:
            scorer = apart(lambda: cls(checkpoint.load_cross(folder), devices[0], DTYPES[bound_dtype], threads))
        scorer._engine.replicas = replicas
        # a folder by its full name: whoever unpickles it may stand elsewhere
        where_from = os.path.abspath(path) if os.path.isdir(path) else os.fspath(path)
        scorer._options = (where_from, names_of(device), dtype, threads)
        return scorer

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], num_labels: int = 1, device: str | None = None, dtype: str | None = None
    ) -> "CrossEncoder":
        """A new cross-encoder on the encoder of any folder, its head still untrained."""
        if num_labels < 1:
            raise InputError(f"num_labels must be at least 1, not {num_labels}.")
        where = pick_device(device)
        folder, torch_dtype = checkpoint.resolve(path), pick_dtype(dtype, where)

        def build() -> "CrossEncoder":
            encoder, model = checkpoint.new_encoder(folder)
            model.network = PairNetwork(encoder, new_head(encoder.shape.width, num_labels))
            return cls(model, where, torch_dtype)

        return apart(build)

    def __reduce__(self) -> tuple[Callable[..., "CrossEncoder"], tuple[Any, ...], dict[str, Any]]:
        if self._options is None:
            raise MunjangError(
                "A model pickles as its path, and this one has none yet: save it and load it from there."
            )
        return CrossEncoder.load, self._options, {name: getattr(self, name) for name in SETTINGS}

    def __setstate__(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self, name, value)

    def predict(
        self,
        pairs: Any,
        activation: Activation | None = None,
        prompt: str | None = None,
        prompt_name: str | None = None,
        batch_tokens: int | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Scores of pairs: [B] for one label, [B, labels] for several; one pair of strings gives its own score.

        `activation` None: the checkpoint's own, else sigmoid for one label and none for several. A name such as
        `Sigmoid`, `Identity` or `Softmax`, or any function of a tensor, replaces it. A prompt, given or one of
        `prompts` by its name, goes in front of the first text of each pair.
        """
        chosen = pick_prompt(prompt, prompt_name, self.prompts, self.default_prompt_name)
        function = self.activation if activation is None else pick_activation(activation)
        first, second, is_single = split_pairs(pairs)
        first = [chosen + text for text in first] if chosen else first
        scores = self._scores(first, second, function, batch_tokens, progress)
        return scores[0] if is_single else scores

    def rank(self, query: str, documents: Any, top_k: int | None = None, **options: Any) -> list[Hit]:
        """Documents by their score against one query, best first; equal scores keep their order. Options of predict."""
        return self.rank_many([query], [documents], top_k, **options)[0]

    def rank_many(
        self,
        queries: Any,
        documents_per_query: Iterable[Any],
        top_k: int | None = None,
        activation: Activation | None = None,
        prompt: str | None = None,
        prompt_name: str | None = None,
        batch_tokens: int | None = None,
        progress: bool | None = None,
    ) -> list[list[Hit]]:
        """`rank` for many queries at once: every text is tokenized once, and all pairs are packed together."""
        if self.num_labels != 1:
            raise InputError(f"Ranking needs one score a pair; this model has {self.num_labels} labels. Use predict.")
        if top_k is not None and (not isinstance(top_k, SupportsIndex) or top_k < 1):
            raise InputError(f"top_k must be a whole number, at least 1, not {top_k!r}.")
        chosen = pick_prompt(prompt, prompt_name, self.prompts, self.default_prompt_name)
        asked = [chosen + query for query in as_texts(queries, "queries")]
        if isinstance(documents_per_query, str) or not isinstance(documents_per_query, Iterable):
            given = type(documents_per_query).__name__
            raise InputError(f"documents_per_query should be a list of documents for each query, not {given}.")
        documents = [as_texts(each, "documents") for each in documents_per_query]
        if len(asked) != len(documents):
            raise InputError(f"There are {len(asked)} queries and {len(documents)} lists of documents.")
        first = [query for query, each in zip(asked, documents, strict=True) for _ in each]
        second = [document for each in documents for document in each]
        function = self.activation if activation is None else pick_activation(activation)
        scores = self._scores(first, second, function, batch_tokens, progress)
        scale = heads.scale_of(function)
        hits, start = [], 0
        for each in documents:
            part = scores[start : start + len(each)]
            order = np.argsort(-part, kind="stable")[:top_k]
            hits.append([Hit(int(at), each[at], float(part[at]), scale) for at in order])
            start += len(each)
        return hits

    def _scores(
        self,
        first: list[str],
        second: list[str],
        activation: Callable[[Tensor], Tensor],
        batch_tokens: int | None,
        progress: bool | None,
    ) -> Floats:
        logits, row_of, num_cut = self._engine.score(first, second, batch_tokens, progress)
        if num_cut:
            warnings.warn(
                f"{num_cut} of {len(first)} pairs are longer than {self.max_length} tokens; their longer text was cut.",
                TruncationWarning,
                stacklevel=3,
            )
        # before equal pairs are spread: torch rounds the end of a row otherwise, and they would no longer tie
        found = self._engine.executor.call(lambda: activation(torch.from_numpy(logits)))
        return scores_of(found, *logits.shape)[row_of]

    @property
    def activation(self) -> Any:
        """What makes scores of logits where a call names nothing else; set it by name or as a function."""
        return self._activation

    @activation.setter
    def activation(self, given: Activation) -> None:
        self._activation = pick_activation(given)

    def own_scores(self, logits: Sequence[float]) -> list[float]:
        """Logits of pairs as scores on the model's own scale, which `predict` gives."""
        with torch.inference_mode():  # an activation may have parameters
            found = self.activation(torch.tensor(logits, dtype=torch.float32)[:, None])
        scores: list[float] = scores_of(found, len(logits), 1).tolist()
        return scores

    @property
    def rerank_weight(self) -> float:
        """Its share when it orders what a retrieval found, from 0 to 1; 1, all of it, where the folder says nothing."""
        return checkpoint.stated_weight(self.model)

    @property
    def max_length(self) -> int | None:
        """Longest pair in tokens, special ones included; None: any."""
        return self.tokenizer.max_length

    @max_length.setter
    def max_length(self, tokens: int | None) -> None:
        checkpoint.check_length(self.model, tokens, self.tokenizer.pair.num_special)
        self.tokenizer.max_length = tokens

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides the scores: weights, modules and tokenizer."""
        return apart(lambda: checkpoint.fingerprint(self.model))

    def save(self, folder: str | os.PathLike[str], format: str | None = None) -> None:
        """Write a folder that sentence-transformers loads too, or one of a quarter of the size: format="munjang-int8".

        That one holds the encoder's weights in 8 bits; it loads as any other, and computes in any dtype.
        """
        self.model.prompts, self.model.default_prompt_name = self.prompts, self.default_prompt_name
        apart(lambda: checkpoint.save_cross(self.model, Path(folder), self.activation, format))

    def info(self) -> dict[str, object]:
        """What this model is, for people and for `munjang info`."""
        return {
            "kind": "cross-encoder",
            **checkpoint.describe(self.model),
            "labels": self.num_labels,
            "activation": type(self.activation).__name__,
            "scale": heads.scale_of(self.activation),
            "rerank_weight": self.rerank_weight if self.num_labels == 1 else None,
            "max_length": self.max_length,
            "prompts": self.prompts,
            "device": str(self._engine.replicas or self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def _engine_at(device: str, folder: str, dtype: str, threads: int | None) -> PairEngine:
    return CrossEncoder.load(folder, device, dtype, threads)._engine


def pick_activation(given: Activation) -> Callable[[Tensor], Tensor]:
    """An activation by its name in any case, or the function itself."""
    if isinstance(given, str):
        names = {name.lower(): name for name in heads.ACTIVATIONS}
        if given.lower() not in names:
            raise unknown("activation", given, heads.ACTIVATIONS)
        return heads.ACTIVATIONS[names[given.lower()]]()
    if not callable(given) or isinstance(given, type):
        raise InputError(f"activation should be a name or a function of a tensor, not {given!r:.60}.")
    return given


def scores_of(found: Any, num_pairs: int, num_labels: int) -> Floats:
    """What an activation made of logits [B, labels], as floats: [B] for one label, [B] or [B, any] for several."""
    is_tensor = isinstance(found, Tensor)
    if is_tensor and num_labels == 1 and found.shape == (num_pairs, 1):
        found = found[:, 0]
    if not is_tensor or found.shape[:1] != (num_pairs,) or found.ndim > min(num_labels, 2):
        given = f"one of shape {list(found.shape)}" if is_tensor else type(found).__name__
        wanted = f"a tensor [{num_pairs}, ...] of logits [{num_pairs}, {num_labels}]"
        raise InputError(f"The activation should make {wanted}, not {given}.")
    scores: Floats = found.float().numpy()
    return scores


def split_pairs(pairs: Any) -> tuple[list[str], list[str], bool]:
    """First and second texts, and whether it was one pair alone."""
    if isinstance(pairs, (tuple, list)) and len(pairs) == 2 and all(isinstance(text, str) for text in pairs):
        return [pairs[0]], [pairs[1]], True
    rows = pairs.tolist() if hasattr(pairs, "tolist") else pairs
    if isinstance(rows, (str, bytes, dict, set, frozenset)) or not hasattr(rows, "__iter__"):
        raise InputError(f"pairs should be a list of (text, text), not {type(pairs).__name__}.")
    rows = list(rows)
    for place, pair in enumerate(rows):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(f"Pair {place} should be two texts, not {pair!r:.60}.")
    return as_texts([a for a, _ in rows], "first texts"), as_texts([b for _, b in rows], "second texts"), False
