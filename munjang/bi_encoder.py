"""BiEncoder: texts to vectors.

>>> from munjang import BiEncoder
>>> model = BiEncoder.load()  # the bundled Korean-English model; or a folder, or a Hub name
>>> model.encode(["a sentence", "another"]).shape
(2, 384)
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np
import torch
from torch import Tensor

from munjang import checkpoint
from munjang.arguments import EncodeOptions, Precision, check_arguments, typed_like
from munjang.engine.devices import Devices
from munjang.engine.engine import Encoding
from munjang.errors import InputError, TruncationWarning
from munjang.model import PROMPT_NAMES, PathLike, TextEncoder
from munjang.nn import pooling as pooling_modes
from munjang.nn.base import VectorNetwork
from munjang.nn.network import SentenceNetwork
from munjang.text.inputs import as_texts, has_texts, is_stream, pick_prompt
from munjang.types import Array, Floats, TokenIds
from munjang.vectors import precision as precisions
from munjang.vectors.level import level
from munjang.vectors.similarity import PAIRWISE, SIMILARITIES, check_vectors

DOCUMENT_PROMPTS = PROMPT_NAMES["document"]
Texts = Sequence[str] | Array | TokenIds  # and any column with `tolist` or `to_pylist`: pandas, Arrow


class BiEncoder(TextEncoder):
    """A sentence encoder. Any number of threads may use one at once; it pickles as its path and settings.

    Make one with `load`.

    >>> BiEncoder.load(dtype="float32")
    BiEncoder('ko-en-small', dimension=384, max_length=512, cpu, float32)
    """

    kind = "bi"
    measures: ClassVar = tuple(SIMILARITIES)
    settings: ClassVar = (*TextEncoder.settings, "truncate_dim", "ranges")
    network: VectorNetwork

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        super().__init__(model, device, dtype, threads)
        self.truncate_dim = model.truncate_dim
        self.width = self.network.num_outputs  # components of a full vector

    @classmethod
    def load(
        cls,
        path: PathLike | None = None,
        device: Devices = None,
        dtype: str | None = None,
        threads: int | None = None,
        pooling: str | Sequence[str] | None = None,
    ) -> "BiEncoder":
        """Load a model from a folder, by a Hub name or the name of a bundled one; none: the Korean-English model.

        `dtype` None: float32 on a CPU, float16 on a GPU that has bfloat16 too (bfloat16 for networks that transformers
        computes). A model whose numbers are too large for float16 goes over to bfloat16, with an OverflowWarning.
        `pooling` replaces the folder's own: one mode of cls, mean, max, mean_sqrt_len_tokens, weightedmean, lasttoken,
        or several put side by side.

        `device` may be a list, ["cuda:0", "cuda:1"]: `encode` shares many texts among a process for each (tested with
        processes on a CPU, not measured on several GPUs). TokenIds, output="torch" and output="tokens" are computed on
        the first alone. Weights that are changed after loading are changed on the first alone.

        Raises CheckpointError for a folder that holds no model, UnsupportedModel for one that we don't compute.

        >>> BiEncoder.load("ko-en-small", pooling="cls").network.modes
        ('cls',)
        """
        modes = None if pooling is None else pooling_modes.check((pooling,) if isinstance(pooling, str) else pooling)
        return cls._load(path, device, dtype, threads, modes)

    @classmethod
    def _read(cls, folder: Path, *options: Any) -> checkpoint.Model:
        return checkpoint.load_bi(folder, *options)

    @overload
    def encode(self, texts: str | Texts, **options: Unpack[EncodeOptions]) -> Floats: ...
    @overload
    def encode(self, texts: Iterator[str], **options: Unpack[EncodeOptions]) -> Iterator[Floats]: ...
    @overload
    def encode(self, texts: str | Texts, *, precision: Precision, **options: Unpack[EncodeOptions]) -> Array: ...
    @overload
    def encode(
        self, texts: Iterator[str], *, precision: Precision, **options: Unpack[EncodeOptions]
    ) -> Iterator[Array]: ...
    @overload
    def encode(
        self, texts: str | Texts, *, output: Literal["torch"], precision: str = ..., **options: Unpack[EncodeOptions]
    ) -> Tensor: ...
    @overload
    def encode(
        self, texts: Iterator[str], *, output: Literal["torch"], precision: str = ..., **options: Unpack[EncodeOptions]
    ) -> Iterator[Tensor]: ...
    @overload
    def encode(  # type: ignore[overload-overlap]  # a string is a sequence of strings, too
        self, texts: str, *, output: Literal["tokens"], **options: Unpack[EncodeOptions]
    ) -> Floats: ...
    @overload
    def encode(self, texts: Texts, *, output: Literal["tokens"], **options: Unpack[EncodeOptions]) -> list[Floats]: ...
    @overload
    def encode(
        self, texts: Iterator[str], *, output: Literal["tokens"], **options: Unpack[EncodeOptions]
    ) -> Iterator[list[Floats]]: ...
    @overload
    def encode(
        self, texts: Any, *, output: str = ..., precision: str = ..., **options: Unpack[EncodeOptions]
    ) -> Any: ...
    def encode(self, texts: Any, **options: Any) -> Any:
        """Turn texts into vectors: [B, D] float32 for a list or column, [D] for one string, arrays for an iterator.

        prompt, prompt_name: text put in front of each, or the name of one of the model's prompts.
        normalize: None as the model does it, True unit length, False without the model's own last Normalize.
        truncate_dim: leading components to keep. precision: float32, int8, uint8, binary, ubinary (with `ranges`).
        long: what to do with texts longer than max_length: truncate (with a warning that counts them), average over
        parts of the text, or error. output: numpy, torch (stays on the device), tokens (one array of token vectors a
        text). batch_tokens: tokens of a batch. chunk_rows: rows of an array where texts come from an iterator.
        progress: None shows a bar for long work on a terminal.

        Raises InputError for a missing text, an unknown option, or with long="error" for a text that is too long.

        >>> BiEncoder.load().encode(["나는 학교에 갔다.", "I went to school."], truncate_dim=128).shape
        (2, 128)
        """
        chunk_rows, progress = options.pop("chunk_rows", 4096), options.pop("progress", None)
        if is_stream(texts):
            if chunk_rows < 1:
                raise InputError(f"chunk_rows must be at least 1, not {chunk_rows}.")
            return self._stream(texts, self._encoding(options), chunk_rows, progress)
        if isinstance(texts, str):
            return self._compute([texts], self._encoding(options), progress=False)[0]
        if isinstance(texts, TokenIds) and (options.get("prompt") or options.get("prompt_name") is not None):
            raise InputError("TokenIds are taken as they are: put the prompt's ids into them, and give no prompt here.")
        items = texts if isinstance(texts, TokenIds) else as_texts(texts)
        return self._compute(items, self._encoding(options), progress)

    def _stream(self, texts: Iterator[str], call: Encoding, chunk_rows: int, progress: bool | None) -> Iterator[Any]:
        done, num_rows = 0, self._engine.rows_at_once(chunk_rows)
        while batch := as_texts(list(islice(texts, num_rows)), first=done):
            vectors = self._compute(batch, call, progress)
            yield from (vectors[start : start + chunk_rows] for start in range(0, len(batch), chunk_rows))
            done += len(batch)

    def _compute(self, texts: list[str] | TokenIds, call: Encoding, progress: bool | None) -> Any:
        computed = self._engine.compute(texts, call, progress)
        if call.long == "truncate" and (num_cut := computed.num_cut):
            warnings.warn(
                f"{num_cut} of {len(texts)} texts are longer than {self.max_length} tokens and were cut; "
                "long='average' reads them whole, long='error' refuses them.",
                TruncationWarning,
                stacklevel=3,
            )
        return computed.spread()

    @typed_like(encode)
    def encode_query(self, texts: Any, **options: Any) -> Any:
        """Encode with the model's own prompt for queries, if it has one. Options of `encode`.

        >>> BiEncoder.load().encode_query("수도가 어디야?").shape
        (384,)
        """
        return self.encode(texts, **self._with_prompt("query", options))

    @typed_like(encode)
    def encode_document(self, texts: Any, **options: Any) -> Any:
        """Encode with the model's own prompt for documents, if it has one. Options of `encode`.

        >>> BiEncoder.load().encode_document(["서울은 한국의 수도이다."]).shape
        (1, 384)
        """
        return self.encode(texts, **self._with_prompt("document", options))

    def _encoding(self, options: dict[str, Any]) -> Encoding:
        """Check the options of one call and complete them with the model's own."""
        check_arguments("encode", options, {*EncodeOptions.__annotations__, "output", "precision"})
        prompt, prompt_name = options.pop("prompt", None), options.pop("prompt_name", None)
        prompt = pick_prompt(prompt, prompt_name, self.prompts, self.default_prompt_name)
        dim = options.pop("truncate_dim", None)
        if dim is None and options.get("output") != "tokens":  # token vectors are never cut
            dim = self.truncate_dim
        if dim is not None and not 1 <= dim <= self.width:
            raise InputError(f"truncate_dim must be between 1 and {self.width}, not {dim}.")
        ranges = options.pop("ranges", None)
        ranges = self.ranges if ranges is None else np.asarray(ranges, np.float32)
        precisions.check(options.get("precision", "float32"), ranges, dim or self.width)
        return Encoding(prompt, truncate_dim=dim, ranges=ranges, **options)

    def tokenize(self, texts: Any) -> TokenIds:
        """Return token ids as the model sees them, special tokens included, cut to its limit.

        >>> BiEncoder.load().tokenize("학교").lengths.tolist()
        [3]
        """
        tokens = self.tokenizer([texts] if isinstance(texts, str) else as_texts(texts))
        return TokenIds(np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1]) if len(tokens.lengths) else [])

    @overload
    def similarity(self, a: str, b: str) -> float: ...
    @overload
    def similarity(self, a: Any, b: Any) -> Floats: ...
    def similarity(self, a: Any, b: Any) -> Any:
        """Compare every text or vector of `a` with every one of `b`, by the model's own function; higher is closer.

        Two strings give a number, everything else a matrix.

        Raises InputError where the two sides have different dimensions.

        >>> BiEncoder.load().similarity("A cat sleeps.", "The kitten is napping.") > 0.8
        True
        """
        scores = SIMILARITIES[self.similarity_name](*self._both(a, b))
        return float(scores[0, 0]) if isinstance(a, str) and isinstance(b, str) else scores

    def similarity_pairwise(self, a: Any, b: Any) -> Floats:
        """Compare each text or vector of `a` with the one in the same row of `b`.

        Returns one number for each row; raises InputError where the sides have different numbers of rows.

        >>> BiEncoder.load().similarity_pairwise(["a", "b"], ["a", "c"]).shape
        (2,)
        """
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

    def calibrate(self, texts: Iterable[str], one_range: bool = False) -> Floats:
        """Measure the range of each dimension over typical texts, for precision int8 and uint8; `save` keeps it.

        `one_range`: the same for all, around zero: int8 codes then have the cosines of the vectors, or nearly so.

        Returns the ranges [2, D].

        >>> BiEncoder.load().calibrate(["typical texts", "of your own"]).shape
        (2, 384)
        """
        self.ranges = precisions.measure(self.encode(as_texts(texts), truncate_dim=self.width), one_range)
        return self.ranges

    def level(self, texts: Iterable[str]) -> float:
        """Take away what the vectors of all texts have in common, so that unrelated texts have a cosine near 0.

        `texts`: a few thousand typical ones. A dense layer is added behind the pooling, which `save` keeps and
        sentence-transformers reads. A cosine of 1 stays 1, and the order of cosines hardly changes. Vectors made
        before belong to another model; int8 ranges, if there are any, are measured again.

        Returns the cosine that becomes 0; 0 if they have nothing in common and the model stays as it was.

        Raises InputError for fewer texts than dimensions, and for models that don't compare by the cosine.

        >>> model = BiEncoder.load()
        >>> middle = model.level(f"{word} number {at}" for at in range(200) for word in ("river", "학교"))
        >>> 0 < middle < 1
        True
        """
        network, replicas = self.network, self._engine.replicas
        if not isinstance(network, SentenceNetwork) or self.similarity_name != "cosine":
            raise InputError(
                "Only a model that runs in torch and compares by the cosine can be levelled; this is a "
                f"{type(network).__name__} with similarity {self.similarity_name!r}."
            )
        if replicas is not None and replicas.others:
            raise InputError("Level a model on one device, save it, and load it on several.")
        distinct = list(dict.fromkeys(as_texts(texts)))
        projection_DD, middle = level(self.encode(distinct, truncate_dim=self.width))
        if middle:
            ranges = self.ranges
            network.add_projection(torch.from_numpy(projection_DD))
            self._restart()
            if ranges is not None:
                self.calibrate(distinct, one_range=bool((ranges == ranges[:, :1]).all()))
        return middle

    @property
    def ranges(self) -> Floats | None:
        """The smallest and largest value of each dimension [2, D]; None before `calibrate`."""
        return self.model.ranges

    @ranges.setter
    def ranges(self, ranges: Floats | None) -> None:
        self.model.ranges = ranges

    @property
    def dimension(self) -> int:
        """The dimension of a vector, after `truncate_dim`."""
        return min(self.width, self.truncate_dim or self.width)

    def _write(self, folder: Path, format: str | None) -> None:
        self.model.similarity, self.model.truncate_dim = self.similarity_name, self.truncate_dim
        checkpoint.save_bi(self.model, folder, format)

    def _facts(self) -> dict[str, object]:
        return {
            "pooling": list(self.network.modes),
            "modules": self.network.module_names,
            "dimension": self.dimension,
            "similarity": self.similarity_name,
        }
