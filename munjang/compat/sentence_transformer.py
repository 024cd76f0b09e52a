"""sentence-transformers' SentenceTransformer over BiEncoder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.bi_encoder import BiEncoder
from munjang.compat.embedder import Embedder
from munjang.compat.loading import asked_dtype, asked_length, check_fixed, find_folder
from munjang.compat.model import Model, Pool
from munjang.compat.quantization import quantize_embeddings
from munjang.compat.renames import renamed
from munjang.compat.similarity_functions import SimilarityFunction
from munjang.errors import InputError, unknown
from munjang.text.inputs import as_texts
from munjang.text.tokenizer import Tokens
from munjang.vectors.precision import NEEDS_RANGES

# The first that the model has is used: always `document`, which every model has here, even if empty
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
OUTPUT_VALUES = ("sentence_embedding", "token_embeddings", None)


class SentenceTransformer(Embedder, Model[BiEncoder]):
    """A sentence encoder with the methods of sentence_transformers.SentenceTransformer; `facade` is its BiEncoder."""

    SUPPORTED_SIMILARITY_FN_NAMES = tuple(SimilarityFunction.possible_values())
    default_huggingface_organization = "sentence-transformers"
    model_type = "SentenceTransformer"

    @renamed(tokenizer_kwargs="processor_kwargs")
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str] | None = None,
        *,
        modules: Any = None,
        device: str | torch.device | None = None,
        prompts: dict[str, str] | None = None,
        default_prompt_name: str | None = None,
        cache_folder: str | None = None,
        trust_remote_code: bool = False,
        revision: str | None = None,
        local_files_only: bool = False,
        token: bool | str | None = None,
        use_auth_token: bool | str | None = None,
        model_kwargs: dict[str, Any] | None = None,
        processor_kwargs: dict[str, Any] | None = None,
        config_kwargs: dict[str, Any] | None = None,
        model_card_data: Any = None,
        backend: str = "torch",
        similarity_fn_name: str | SimilarityFunction | None = None,
        truncate_dim: int | None = None,
    ) -> None:
        check_fixed(
            modules=modules,
            config_kwargs=config_kwargs,
            model_card_data=model_card_data,
            backend=backend,
        )
        if token is not None and use_auth_token is not None:
            raise InputError("use_auth_token is an older name of token: give only one of them.")
        token = use_auth_token if token is None else token
        organization = self.default_huggingface_organization
        folder = find_folder(model_name_or_path, organization, cache_folder, revision, token, local_files_only)
        length = asked_length(processor_kwargs)
        facade = BiEncoder.load(folder, device, asked_dtype(model_kwargs, folder))
        merged = {"query": "", "document": "", **facade.prompts, **(prompts or {})}
        super().__init__(facade, merged, default_prompt_name)
        if similarity_fn_name is not None:
            self.similarity_fn_name = similarity_fn_name
        if truncate_dim is not None:
            self.truncate_dim = truncate_dim
        if length is not None:
            self.max_seq_length = length

    @staticmethod
    def load(input_path: str) -> "SentenceTransformer":
        """Return `SentenceTransformer(input_path)`."""
        return SentenceTransformer(input_path)

    @renamed(sentences="inputs")
    def encode(
        self,
        inputs: Any,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: Pool | None = None,
        chunk_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Encode texts: return an array [B, D], a tensor, or a list of tensors; for one text, its embedding.

        `batch_size` and `chunk_size` never change a result: batches are made by tokens to suit the device.
        `output_value`: sentence_embedding; token_embeddings, one tensor per text; None, one dict per text with both and
        the token ids, without padding. Texts longer than `max_seq_length` are cut, and a warning counts them.
        """
        self._check_call("encode", batch_size, device, pool, kwargs)
        if output_value not in OUTPUT_VALUES:
            raise unknown("output_value", output_value, map(str, OUTPUT_VALUES))
        is_single = isinstance(inputs, str)
        texts = [inputs] if is_single else as_texts(inputs)
        call = {"prompt": self._prompt(prompt, prompt_name), "progress": self._progress(show_progress_bar)}
        dim = self.truncate_dim if truncate_dim is None else truncate_dim
        # more dimensions than the model has means all of them, as in sentence-transformers
        sentence = {"normalize": normalize_embeddings or None, "truncate_dim": dim and min(dim, self.facade.width)}
        if output_value == "token_embeddings":
            rows = self._token_vectors(texts, call)
            rows = rows if precision in ("float32", None) else quantize_embeddings(rows, precision)
        elif output_value is None:
            rows = self._everything(texts, call, {**call, "truncate_dim": sentence["truncate_dim"]})
        else:
            as_numpy = convert_to_numpy and not convert_to_tensor
            rows = self._vectors(texts, {**call, **sentence}, precision or "float32", as_numpy)
            if isinstance(rows, Tensor):
                rows = rows.cpu() if pool is not None or isinstance(device, list) else rows
                rows = rows if convert_to_tensor else list(rows)
        return rows[0] if is_single else rows

    def _vectors(self, texts: list[str], call: dict[str, Any], precision: str, as_numpy: bool) -> Any:
        """Return vectors in sentence-transformers' dtypes: the model's own for tensors, never bfloat16 for arrays."""
        if not texts:
            return np.array([]) if as_numpy else torch.tensor([], device=self.device)
        if precision != "float32":
            if precision in NEEDS_RANGES and self.facade.ranges is None:
                raise InputError(
                    f"precision={precision!r} needs the range of each component: call model.facade.calibrate(texts) "
                    "once with a few thousand typical texts (save keeps it) or quantize_embeddings(vectors, precision, "
                    "calibration_embeddings=...). The texts at hand are not used: a text would get another code in "
                    "every batch."
                )
            codes = self.facade.encode(texts, precision=precision, **call)
            return codes if as_numpy else torch.from_numpy(codes)
        if as_numpy:
            vectors = self.facade.encode(texts, **call)
            return vectors.astype(np.float16) if self.dtype == torch.float16 else vectors
        return self.facade.encode(texts, output="torch", **call).to(self.dtype)

    def _token_vectors(self, texts: list[str], call: dict[str, Any]) -> Any:
        states = self.facade.encode(texts, output="tokens", **call)
        return [torch.from_numpy(state).to(self.device, self.dtype) for state in states]

    def _everything(self, texts: list[str], call: dict[str, Any], sentence: dict[str, Any]) -> list[dict[str, Any]]:
        if not texts:
            return []
        states = self._token_vectors(texts, call)
        vectors = self.facade.encode(texts, output="torch", **sentence).to(self.dtype)
        rows = []
        for text, state, vector in zip(texts, states, vectors, strict=True):
            row = self.preprocess([text], call["prompt"])
            row = {
                name: value[0].to(self.device) if isinstance(value, Tensor) else value for name, value in row.items()
            }
            rows.append({**row, "token_embeddings": state, "sentence_embedding": vector})
        return rows

    @renamed(sentences="inputs")
    def encode_query(
        self,
        inputs: Any,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: Pool | None = None,
        chunk_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call `encode` with all its arguments; the default prompt is the one named query."""
        return self.encode(
            inputs=inputs,
            prompt_name=self._role(("query",), prompt_name, prompt),
            prompt=prompt,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            device=device,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            pool=pool,
            chunk_size=chunk_size,
            **{"task": "query", **kwargs},
        )

    @renamed(sentences="inputs")
    def encode_document(
        self,
        inputs: Any,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: Pool | None = None,
        chunk_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Call `encode` with all its arguments; the default prompt is the one named document."""
        return self.encode(
            inputs=inputs,
            prompt_name=self._role(DOCUMENT_PROMPTS, prompt_name, prompt),
            prompt=prompt,
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            output_value=output_value,
            precision=precision,
            convert_to_numpy=convert_to_numpy,
            convert_to_tensor=convert_to_tensor,
            device=device,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            pool=pool,
            chunk_size=chunk_size,
            **{"task": "document", **kwargs},
        )

    def _role(self, names: tuple[str, ...], prompt_name: str | None, prompt: str | None) -> str | None:
        if prompt_name is not None or prompt is not None:
            return prompt_name
        return next((name for name in names if name in self.prompts), None)

    def encode_multi_process(
        self,
        sentences: Any,
        pool: Pool,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        chunk_size: int | None = None,
        show_progress_bar: bool | None = None,
        precision: str = "float32",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Any:
        """Call `encode` with a pool, which lives in this process: no other process is started."""
        return self.encode(
            sentences,
            prompt_name,
            prompt,
            batch_size,
            show_progress_bar,
            precision=precision,
            normalize_embeddings=normalize_embeddings,
            truncate_dim=truncate_dim,
            pool=pool,
            chunk_size=chunk_size,
        )

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Return the similarity of all pairs of embeddings, [A, B]; higher is closer."""
        return SimilarityFunction.to_similarity_fn(self.similarity_fn_name)(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Return the similarity of matching embeddings, [A]."""
        return SimilarityFunction.to_similarity_pairwise_fn(self.similarity_fn_name)(embeddings1, embeddings2)

    @property
    def similarity_fn_name(self) -> str:
        """Return the name of the similarity: cosine, dot, euclidean or manhattan."""
        return self.facade.similarity_name

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: str | SimilarityFunction | None) -> None:
        self.facade.similarity_name = name.value if isinstance(name, SimilarityFunction) else name or "cosine"

    @property
    def truncate_dim(self) -> int | None:
        """Return how many dimensions encode keeps; None means all."""
        return self.facade.truncate_dim

    @truncate_dim.setter
    def truncate_dim(self, dim: int | None) -> None:
        self.facade.truncate_dim = dim

    @contextmanager
    def truncate_embeddings(self, truncate_dim: int | None) -> Iterator[None]:
        """Make encode keep only `truncate_dim` dimensions inside the block."""
        before, self.truncate_dim = self.truncate_dim, truncate_dim
        try:
            yield
        finally:
            self.truncate_dim = before

    truncate_sentence_embeddings = truncate_embeddings  # its name before 6.0

    def get_embedding_dimension(self) -> int:
        """Return the dimension of embeddings."""
        return self.facade.dimension

    def get_sentence_embedding_dimension(self) -> int:
        """Return the dimension of embeddings."""
        return self.facade.dimension

    def set_pooling_include_prompt(self, include_prompt: bool) -> None:
        """Set whether the tokens of a prompt are included in the pooling."""
        self.facade.network.includes_prompt = include_prompt

    def is_singular_input(self, inputs: Any) -> bool:
        """Tell whether this is one text, not several."""
        return isinstance(inputs, str)

    def _tokens(self, inputs: Any, prompt: str) -> Tokens:
        return self.facade.tokenizer([prompt + text for text in as_texts(inputs)])

    def _before_save(self) -> None:
        self.facade.prompts, self.facade.default_prompt_name = self.prompts, self.default_prompt_name

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "includes_prompt": self.facade.network.includes_prompt}

    def __setstate__(self, state: dict[str, Any]) -> None:
        includes_prompt = state.pop("includes_prompt")
        self.__dict__.update(state)
        self.set_pooling_include_prompt(includes_prompt)
