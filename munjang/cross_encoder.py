"""CrossEncoder: pairs of texts to scores, both texts read together.

>>> from munjang import CrossEncoder
>>> scorer = CrossEncoder.load()  # the bundled Korean-English re-ranker; or a folder, or a Hub name
>>> scorer.rank("How fast is light?", ["A feather is light.", "The speed of light is 300,000 km a second."])[0].text
'The speed of light is 300,000 km a second.'
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, SupportsIndex, Unpack, overload

import numpy as np
import torch
from torch import Tensor, nn

from munjang import checkpoint
from munjang.arguments import Activation, PredictOptions, RankOptions, check_arguments
from munjang.engine.devices import Devices, pick_device, pick_dtype
from munjang.engine.engine import Scoring
from munjang.errors import InputError, TruncationWarning, unknown
from munjang.model import LoadedModel, PathLike
from munjang.nn import heads
from munjang.nn.network import PairNetwork, new_head
from munjang.nn.threads import run_in_thread
from munjang.text.inputs import as_texts, pick_prompt
from munjang.types import Floats, Hit, Hits

Pair = tuple[str, str]
RANK_OPTIONS = {*PredictOptions.__annotations__, *RankOptions.__annotations__}


class CrossEncoder(LoadedModel):
    """A scorer of pairs. Any number of threads may use one at once; it pickles as its path and settings.

    Make one with `load`, or with `create` to train it.

    >>> CrossEncoder.load().predict([("How fast is light?", "300,000 km a second.")]).shape
    (1,)
    """

    kind = "cross"
    hub = checkpoint.CROSS_HUB
    settings: ClassVar = (*LoadedModel.settings, "activation")

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        super().__init__(model, device, dtype, threads)
        self.num_labels = self.network.num_outputs
        # the checkpoint's own, else a probability for one label and raw logits for several
        self.activation = model.activation or (nn.Sigmoid() if self.num_labels == 1 else nn.Identity())

    @classmethod
    def load(
        cls, path: PathLike | None = None, device: Devices = None, dtype: str | None = None, threads: int | None = None
    ) -> "CrossEncoder":
        """Load a cross-encoder from a folder or by a Hub name; none: the bundled Korean-English re-ranker.

        A bare name is that of a bundled one, or one of the organization `cross-encoder` on the Hub.

        `device` may be a list: `predict`, `rank` and `rank_many` share many pairs among a process for each (tested
        with processes on a CPU, not measured on several GPUs); all else is computed on the first. Weights that are
        changed after loading are changed on the first alone.

        Raises CheckpointError for a folder that holds no cross-encoder.

        >>> CrossEncoder.load().num_labels
        1
        """
        return cls._load(path, device, dtype, threads)

    @classmethod
    def _read(cls, folder: Path, *options: Any) -> checkpoint.Model:
        return checkpoint.load_cross(folder)

    @classmethod
    def create(
        cls, path: PathLike, num_labels: int = 1, device: str | None = None, dtype: str | None = None
    ) -> "CrossEncoder":
        """Start a cross-encoder on the encoder of any folder; its head is still untrained.

        Raises InputError for fewer than one label.

        >>> CrossEncoder.create("ko-en-small", num_labels=3).predict([("a", "b")]).shape
        (1, 3)
        """
        if num_labels < 1:
            raise InputError(f"num_labels must be at least 1, not {num_labels}.")
        where = pick_device(device)
        folder, torch_dtype = checkpoint.resolve(path), pick_dtype(dtype, where)

        def build() -> "CrossEncoder":
            encoder, model = checkpoint.new_encoder(folder)
            model.network = PairNetwork(encoder, new_head(encoder.shape.width, num_labels))
            return cls(model, where, torch_dtype)

        return run_in_thread(build)

    @overload
    def predict(
        self, pairs: Pair, activation: Activation | None = ..., **options: Unpack[PredictOptions]
    ) -> np.float32 | Floats: ...
    @overload
    def predict(
        self, pairs: Iterable[Pair], activation: Activation | None = ..., **options: Unpack[PredictOptions]
    ) -> Floats: ...
    @overload
    def predict(self, pairs: Any, activation: Activation | None = ..., **options: Unpack[PredictOptions]) -> Any: ...
    def predict(self, pairs: Any, activation: Activation | None = None, **options: Unpack[PredictOptions]) -> Any:
        """Score pairs: [B] for one label, [B, labels] for several; one pair of strings gives its own score.

        activation: None the checkpoint's own, else sigmoid for one label and none for several. A name such as
        `Sigmoid`, `Identity` or `Softmax`, or any function of a tensor, replaces it. prompt, prompt_name: text put in
        front of the first text of each pair. batch_tokens: tokens of a batch. progress: None shows a bar for long work.

        Raises InputError for anything but pairs of texts.

        >>> CrossEncoder.load().predict([("How fast is light?", "300,000 km a second.")]).shape
        (1,)
        """
        given: RankOptions = {**options, "activation": activation}
        prompt = self._prompt("predict", given)
        first, second, is_single = split_pairs(pairs)
        scores = self._scores([prompt + text for text in first] if prompt else first, second, given)
        return scores[0] if is_single else scores

    def rank(self, query: str, documents: Any, top_k: int | None = None, **options: Unpack[RankOptions]) -> list[Hit]:
        """Rank documents by their score against one query, best first; equal scores keep their order.

        Raises InputError where the model has several labels.

        >>> [hit.index for hit in CrossEncoder.load().rank("How fast is light?", ["Feathers.", "300,000 km/s"])]
        [1, 0]
        """
        check_arguments("rank", options, RANK_OPTIONS)
        return self.rank_many([query], [documents], top_k, **options)[0]

    def rank_many(
        self,
        queries: Any,
        documents_per_query: Iterable[Any],
        top_k: int | None = None,
        **options: Unpack[RankOptions],
    ) -> list[list[Hit]]:
        """Rank documents for many queries: every text is tokenized once, and all pairs are packed together.

        Raises InputError where there are not as many lists of documents as queries.

        >>> [len(hits) for hits in CrossEncoder.load().rank_many(["a", "b"], [["x", "y"], ["z"]])]
        [2, 1]
        """
        prompt = self._prompt("rank_many", options)
        if self.num_labels != 1:
            raise InputError(f"Ranking needs one score a pair; this model has {self.num_labels} labels. Use predict.")
        if top_k is not None and (not isinstance(top_k, SupportsIndex) or top_k < 1):
            raise InputError(f"top_k must be a whole number, at least 1, not {top_k!r}.")
        asked = [prompt + query for query in as_texts(queries, "queries")]
        if isinstance(documents_per_query, str) or not isinstance(documents_per_query, Iterable):
            given = type(documents_per_query).__name__
            raise InputError(f"documents_per_query should be a list of documents for each query, not {given}.")
        documents = [as_texts(texts, "documents") for texts in documents_per_query]
        if len(asked) != len(documents):
            raise InputError(f"There are {len(asked)} queries and {len(documents)} lists of documents.")
        first = [query for query, texts in zip(asked, documents, strict=True) for _ in texts]
        second = [document for texts in documents for document in texts]
        scores, scale = self._scores(first, second, options), heads.scale_of(self._function(options))
        hits, start = list[list[Hit]](), 0
        for texts in documents:
            part = scores[start : start + len(texts)]
            order = np.argsort(-part, kind="stable")[:top_k]
            hits.append(Hits([Hit(int(at), texts[at], float(part[at]), scale) for at in order]))
            start += len(texts)
        return hits

    def _prompt(self, function: str, options: RankOptions) -> str:
        check_arguments(function, options, RANK_OPTIONS)
        name = options.get("prompt_name")
        return pick_prompt(options.get("prompt"), name, self.prompts, self.default_prompt_name)

    def _function(self, options: RankOptions) -> Callable[[Tensor], Tensor]:
        given = options.get("activation")
        function: Callable[[Tensor], Tensor] = self.activation if given is None else pick_activation(given)
        return function

    def _scores(self, first: list[str], second: list[str], options: RankOptions) -> Floats:
        function = self._function(options)
        call, pairs = Scoring(options.get("batch_tokens")), list(zip(first, second, strict=True))
        computed = self._engine.compute(pairs, call, options.get("progress"))
        if num_cut := computed.num_cut:
            warnings.warn(
                f"{num_cut} of {len(first)} pairs are longer than {self.max_length} tokens; their longer text was cut.",
                TruncationWarning,
                stacklevel=3,
            )
        # before equal pairs are spread: torch rounds the end of a row otherwise, and they would no longer tie
        logits: Floats = computed.rows
        activated = self._engine.executor.call(lambda: function(torch.from_numpy(logits)))
        scores: Floats = computed.spread(scores_of(activated, *logits.shape))
        return scores

    @property
    def activation(self) -> Any:
        """The default activation, from logits to scores; set it by name or as a function."""
        return self._activation

    @activation.setter
    def activation(self, given: Activation) -> None:
        self._activation = pick_activation(given)

    def own_scores(self, logits: Sequence[float]) -> list[float]:
        """Return logits of pairs as scores on the model's own scale, the one of `predict`.

        >>> CrossEncoder.load().own_scores([0.0])
        [0.5]
        """
        with torch.inference_mode():  # an activation may have parameters
            activated = self.activation(torch.tensor(logits, dtype=torch.float32)[:, None])
        scores: list[float] = scores_of(activated, len(logits), 1).tolist()
        return scores

    @property
    def rerank_weight(self) -> float:
        """The weight of its scores when it re-ranks search results, from 0 to 1 (the default)."""
        return checkpoint.stated_weight(self.model)

    @property
    def num_special(self) -> int:
        """The number of special tokens around and between the texts of a pair."""
        return self.tokenizer.pair.num_special

    def _write(self, folder: Path, format: str | None) -> None:
        checkpoint.save_cross(self.model, folder, self.activation, format)

    def _facts(self) -> dict[str, object]:
        return {
            "labels": self.num_labels,
            "activation": type(self.activation).__name__,
            "scale": heads.scale_of(self.activation),
            "rerank_weight": self.rerank_weight if self.num_labels == 1 else None,
        }


def pick_activation(activation: Activation) -> Callable[[Tensor], Tensor]:
    """Return the activation of a name in upper or lower case, or the function itself."""
    if isinstance(activation, str):
        names = {name.lower(): name for name in heads.ACTIVATIONS}
        if activation.lower() not in names:
            raise unknown("activation", activation, heads.ACTIVATIONS)
        return heads.ACTIVATIONS[names[activation.lower()]]()
    if not callable(activation) or isinstance(activation, type):
        raise InputError(f"activation should be a name or a function of a tensor, not {activation!r:.60}.")
    return activation


def scores_of(activated: Any, num_pairs: int, num_labels: int) -> Floats:
    """Return an activation's result as floats: [B] for one label, [B] or [B, any] for several."""
    is_tensor = isinstance(activated, Tensor)
    if is_tensor and num_labels == 1 and activated.shape == (num_pairs, 1):
        activated = activated[:, 0]
    if not is_tensor or activated.shape[:1] != (num_pairs,) or activated.ndim > min(num_labels, 2):
        given = f"one of shape {list(activated.shape)}" if is_tensor else type(activated).__name__
        wanted = f"a tensor [{num_pairs}, ...] of logits [{num_pairs}, {num_labels}]"
        raise InputError(f"The activation should make {wanted}, not {given}.")
    scores: Floats = activated.float().numpy()
    return scores


def split_pairs(pairs: Any) -> tuple[list[str], list[str], bool]:
    """Return the first texts, the second texts, and whether a single pair was passed."""
    if isinstance(pairs, (tuple, list)) and len(pairs) == 2 and all(isinstance(text, str) for text in pairs):
        return [pairs[0]], [pairs[1]], True
    rows = pairs.tolist() if hasattr(pairs, "tolist") else pairs
    if isinstance(rows, (str, bytes, dict, set, frozenset)) or not hasattr(rows, "__iter__"):
        raise InputError(f"pairs should be a list of (text, text), not {type(pairs).__name__}.")
    rows = list(rows)
    for row, pair in enumerate(rows):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(f"Pair {row} should be two texts, not {pair!r:.60}.")
    return as_texts([a for a, _ in rows], "first texts"), as_texts([b for _, b in rows], "second texts"), False
