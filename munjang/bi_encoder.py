"""BiEncoder: texts to vectors.

>>> from munjang import BiEncoder
>>> model = BiEncoder.load()  # the bundled Korean-English model; or a folder, or a Hub name
>>> model.encode(["a sentence", "another"]).shape
(2, 384)
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang import checkpoint
from munjang.engine.encoding import Encoding, Engine
from munjang.engine.executor import DTYPES, Executor, apart
from munjang.engine.replicas import Devices, Replicas, names_of, place_model
from munjang.errors import CheckpointError, InputError, MunjangError, unknown
from munjang.nn import pooling as pooling_modes
from munjang.nn.encoder import Encoder
from munjang.nn.network import SentenceNetwork
from munjang.text.inputs import as_texts, has_texts, is_stream, pick_prompt
from munjang.types import Floats, TokenIds
from munjang.vectors import precision as precisions
from munjang.vectors.similarity import PAIRWISE, SIMILARITIES, check_vectors

# what may change after loading
SETTINGS = ("prompts", "default_prompt_name", "truncate_dim", "similarity_name", "max_length", "ranges")
DOCUMENT_PROMPTS = ("document", "passage", "corpus")


class BiEncoder:
    """A sentence encoder. Any number of threads may use one at once; it pickles as its path, options and settings."""

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        self.model = model
        self.network: SentenceNetwork = model.network.to_compute(device, dtype)
        self.tokenizer = model.tokenizer
        self.prompts: dict[str, str] = dict(model.prompts)
        self.default_prompt_name = model.default_prompt_name
        self.truncate_dim = model.truncate_dim
        self.device, self.dtype = device, dtype
        self.width = checkpoint.width_of(model)  # components of a full vector
        encoder = self.network.encoder
        pad_id = encoder.shape.pad_id if isinstance(encoder, Encoder) else None
        executor = Executor(self.network, device, threads)
        self._engine = Engine(
            self.network, self.tokenizer, executor, self.width, checkpoint.vocab_size_of(model), pad_id
        )
        self._options: tuple[Any, ...] | None = None  # how `load` was called, for pickling
        self.similarity_name = model.similarity or "cosine"
        if self.default_prompt_name is not None and self.default_prompt_name not in self.prompts:
            raise CheckpointError(
                f"{model.folder}: the default prompt {self.default_prompt_name!r} is not among {sorted(self.prompts)}."
            )

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] | None = None,
        device: Devices = None,
        dtype: str | None = None,
        threads: int | None = None,
        pooling: str | Sequence[str] | None = None,
    ) -> "BiEncoder":
        """A model from a folder, a Hub name, or by the name of a bundled one; none: the bundled Korean-English model.

        `dtype` None: float32 on a CPU, bfloat16 on a GPU that has it. `pooling` replaces the folder's own: one mode of
        cls, mean, max, mean_sqrt_len_tokens, weightedmean, lasttoken, or several put side by side.

        `device` may be a list, ["cuda:0", "cuda:1"]: `encode` shares many texts among a process for each (tested with
        processes on a CPU, not measured on several GPUs). TokenIds, output="torch" and output="tokens" are computed on
        the first alone. Weights that are changed after loading are changed on the first alone.
        """
        path = checkpoint.default("bi") if path is None else path
        modes = None if pooling is None else pooling_modes.check((pooling,) if isinstance(pooling, str) else pooling)
        folder = checkpoint.resolve(path)
        devices, bound_dtype = place_model(folder, device, dtype)
        with Replicas(_engine_at, devices, (os.path.abspath(folder), bound_dtype, threads, modes)) as replicas:
            model = apart(lambda: cls(checkpoint.load_bi(folder, modes), devices[0], DTYPES[bound_dtype], threads))
        model._engine.replicas = replicas
        # a folder by its full name: whoever unpickles it may stand elsewhere
        where_from = os.path.abspath(path) if os.path.isdir(path) else os.fspath(path)
        model._options = (where_from, names_of(device), dtype, threads, modes)
        return model

    def __reduce__(self) -> tuple[Callable[..., "BiEncoder"], tuple[Any, ...], dict[str, Any]]:
        if self._options is None:
            raise MunjangError(
                "A model pickles as its path, and this one has none yet: save it and load it from there."
            )
        return BiEncoder.load, self._options, {name: getattr(self, name) for name in SETTINGS}

    def __setstate__(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self, name, value)

    def encode(
        self,
        texts: Any,
        prompt: str | None = None,
        prompt_name: str | None = None,
        normalize: bool | None = None,
        truncate_dim: int | None = None,
        precision: str = "float32",
        long: str = "truncate",
        batch_tokens: int | None = None,
        chunk_rows: int = 4096,
        progress: bool | None = None,
        output: str = "numpy",
        ranges: Floats | None = None,
    ) -> Any:
        """Vectors of texts: [B, D] float32 for a list or column, [D] for one string, arrays in order for an iterator.

        normalize: None as the model does it, True unit length, False without the model's own last Normalize.
        long: what to do with texts beyond the model's limit: truncate (with a warning that counts them), average
        over pieces, or error. output: numpy, torch (stays on the device), tokens (one array of token vectors a text).
        """
        options = self._encoding(
            prompt, prompt_name, normalize, truncate_dim, precision, long, batch_tokens, output, ranges
        )
        if is_stream(texts):
            if chunk_rows < 1:
                raise InputError(f"chunk_rows must be at least 1, not {chunk_rows}.")
            return self._stream(texts, options, chunk_rows, progress)
        if isinstance(texts, str):
            return self._engine.encode([texts], options, progress=False)[0]
        if not isinstance(texts, TokenIds):
            return self._engine.encode(as_texts(texts), options, progress)
        if prompt or prompt_name is not None:
            raise InputError("TokenIds are taken as they are: put the prompt's ids into them, and give no prompt here.")
        return self._engine.encode(texts, options, progress)

    def _stream(self, texts: Iterator[str], options: Encoding, chunk_rows: int, progress: bool | None) -> Iterator[Any]:
        done, num_rows = 0, self._engine.rows_at_once(chunk_rows)
        while some := as_texts(list(islice(texts, num_rows)), first=done):
            vectors = self._engine.encode(some, options, progress)
            yield from (vectors[start : start + chunk_rows] for start in range(0, len(some), chunk_rows))
            done += len(some)

    def encode_query(self, texts: Any, **options: Any) -> Any:
        """`encode` with the model's own prompt for queries, if it has one."""
        return self.encode(texts, **self._role(("query",), options))

    def encode_document(self, texts: Any, **options: Any) -> Any:
        """`encode` with the model's own prompt for documents, if it has one."""
        return self.encode(texts, **self._role(DOCUMENT_PROMPTS, options))

    def _role(self, names: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        if options.get("prompt") is None and options.get("prompt_name") is None:
            # none of its own: no prompt at all, not the default one
            options = {**options, "prompt": next((self.prompts[name] for name in names if self.prompts.get(name)), "")}
        return options

    def _encoding(
        self,
        prompt: str | None,
        prompt_name: str | None,
        normalize: bool | None,
        truncate_dim: int | None,
        precision: str,
        long: str,
        batch_tokens: int | None,
        output: str,
        ranges: Floats | None,
    ) -> Encoding:
        chosen = pick_prompt(prompt, prompt_name, self.prompts, self.default_prompt_name)
        # token vectors are never cut, whatever the model does to sentence vectors
        dim = self.truncate_dim if truncate_dim is None and output != "tokens" else truncate_dim
        if dim is not None and not 1 <= dim <= self.width:
            raise InputError(f"truncate_dim must be between 1 and {self.width}, not {dim}.")
        ranges = self.ranges if ranges is None else np.asarray(ranges, np.float32)
        precisions.check(precision, ranges, dim or self.width)
        return Encoding(chosen, normalize, dim, precision, long, batch_tokens, output, ranges)

    def tokenize(self, texts: Any) -> TokenIds:
        """Token ids as the model sees them, special tokens included, cut to its limit."""
        tokens = self.tokenizer([texts] if isinstance(texts, str) else as_texts(texts))
        return TokenIds(np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1]) if len(tokens.lengths) else [])

    def similarity(self, a: Any, b: Any) -> Any:
        """How close every text or vector of `a` is to every one of `b`, by the model's own function; higher is closer.

        Two strings give a number, everything else a matrix.
        """
        scores = SIMILARITIES[self.similarity_name](*self._both(a, b))
        return float(scores[0, 0]) if isinstance(a, str) and isinstance(b, str) else scores

    def similarity_pairwise(self, a: Any, b: Any) -> Floats:
        """How close each text or vector of `a` is to the one in the same place of `b`."""
        left, right = self._both(a, b)
        if len(left) != len(right):
            raise InputError(f"Row by row needs as many on both sides, not {len(left)} and {len(right)}.")
        return PAIRWISE[self.similarity_name](left, right)

    def _both(self, a: Any, b: Any) -> tuple[Floats, Floats]:
        left, right = self._vectors(a, "first side"), self._vectors(b, "second side")
        if left.shape[1] != right.shape[1]:
            raise InputError(
                f"The two sides have {left.shape[1]} and {right.shape[1]} dimensions; they must be of one model."
            )
        return left, right

    def _vectors(self, side: Any, what: str) -> Floats:
        if isinstance(side, Tensor):
            side = side.detach().float().cpu().numpy()
        if isinstance(side, str):
            side = [side]
        if has_texts(side):
            return check_vectors(self.encode(side, progress=False), what)
        return check_vectors(side, what)

    @property
    def similarity_name(self) -> str:
        """cosine, dot, euclidean or manhattan."""
        return self._similarity_name

    @similarity_name.setter
    def similarity_name(self, name: str) -> None:
        if name not in SIMILARITIES:
            raise unknown("similarity", name, SIMILARITIES)
        self._similarity_name = name

    def calibrate(self, texts: Iterable[str], one_range: bool = False) -> Floats:
        """Measure the range of each component over typical texts, for precision int8 and uint8; `save` keeps it.

        `one_range`: the same for all, around zero: int8 codes then have the cosines of the vectors, or nearly so.
        """
        self.ranges = precisions.measure(self.encode(as_texts(texts), truncate_dim=self.width), one_range)
        return self.ranges

    @property
    def ranges(self) -> Floats | None:
        """Smallest and largest value of each component [2, D], if `calibrate` has measured them."""
        return self.model.ranges

    @ranges.setter
    def ranges(self, ranges: Floats | None) -> None:
        self.model.ranges = ranges

    @property
    def max_length(self) -> int | None:
        """Longest text in tokens, special ones included; None: any."""
        return self.tokenizer.max_length

    @max_length.setter
    def max_length(self, tokens: int | None) -> None:
        checkpoint.check_length(self.model, tokens, self.tokenizer.single.num_special)
        self.tokenizer.max_length = tokens

    @property
    def dimension(self) -> int:
        """Components of a vector, after `truncate_dim`."""
        return min(self.width, self.truncate_dim or self.width)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that decides the vectors: weights, modules and tokenizer."""
        return apart(lambda: checkpoint.fingerprint(self.model))

    def save(self, folder: str | os.PathLike[str], format: str | None = None) -> None:
        """Write a folder that sentence-transformers loads too, or one of a quarter of the size: format="munjang-int8".

        That one holds the encoder's weights in 8 bits; it loads as any other, and computes in any dtype.
        """
        self.model.prompts, self.model.default_prompt_name = self.prompts, self.default_prompt_name
        self.model.similarity, self.model.truncate_dim = self.similarity_name, self.truncate_dim
        apart(lambda: checkpoint.save_bi(self.model, Path(folder), format))

    def info(self) -> dict[str, object]:
        """What this model is, for people and for `munjang info`."""
        return {
            "kind": "bi-encoder",
            **checkpoint.describe(self.model),
            "pooling": list(self.network.modes),
            "modules": checkpoint.module_names(self.model),
            "dimension": self.dimension,
            "max_length": self.max_length,
            "prompts": self.prompts,
            "similarity": self.similarity_name,
            "device": str(self._engine.replicas or self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def _engine_at(device: str, folder: str, dtype: str, threads: int | None, modes: Any) -> Engine:
    return BiEncoder.load(folder, device, dtype, threads, modes)._engine
