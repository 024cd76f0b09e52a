"""sentence-transformers' SentenceTransformer over BiEncoder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from munjang.bi_encoder import BiEncoder
from munjang.compat import pools
from munjang.compat.card import card_data
from munjang.compat.compose import blocks_of, composed, follow, loaded_blocks
from munjang.compat.embedder import Embedder
from munjang.compat.fitting import SentenceFitting
from munjang.compat.loading import asked_dtype, asked_length, check_fixed, find_folder
from munjang.compat.model import Model
from munjang.compat.modules.pooling import Pooling
from munjang.compat.plain import Wanted, features_of, rows_of
from munjang.compat.quantization import quantize_embeddings
from munjang.compat.renames import deprecated_kwargs
from munjang.compat.saving import write_modules
from munjang.compat.similarity_functions import SimilarityFunction
from munjang.errors import InputError, unknown
from munjang.text.inputs import as_texts
from munjang.vectors.precision import NEEDS_RANGES

# The first that the model has is used: always `document`, which every model has here, even if empty
DOCUMENT_PROMPTS = ("document", "passage", "corpus")
DIMENSIONS = ("get_embedding_dimension", "get_sentence_embedding_dimension", "get_word_embedding_dimension")
OUTPUT_VALUES = ("sentence_embedding", "token_embeddings", None)


class SentenceTransformer(SentenceFitting, Embedder, Model[BiEncoder]):
    """A sentence encoder with the methods of sentence_transformers.SentenceTransformer; `facade` is its BiEncoder."""

    SUPPORTED_SIMILARITY_FN_NAMES = ("cosine", "dot", "euclidean", "manhattan")
    default_huggingface_organization = "sentence-transformers"
    model_type = "SentenceTransformer"

    @deprecated_kwargs(tokenizer_kwargs="processor_kwargs")
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
        check_fixed(config_kwargs=config_kwargs, backend=backend)
        if token is not None and use_auth_token is not None:
            raise InputError("use_auth_token is an older name of token: give only one of them.")
        token = use_auth_token if token is None else token
        if modules is not None:
            facade, blocks = None, list(modules.values() if isinstance(modules, dict) else modules)
            if not blocks:
                raise InputError("modules is empty: give at least one, such as Transformer(path).")
            own: dict[str, str] = {}
        else:
            organization = self.default_huggingface_organization
            folder = find_folder(model_name_or_path, organization, cache_folder, revision, token, local_files_only)
            found = loaded_blocks(folder)
            if found is None:
                facade = BiEncoder.load(folder, device, asked_dtype(model_kwargs, folder))
                blocks, own = blocks_of(facade), facade.prompts
                default_prompt_name = default_prompt_name or facade.model.default_prompt_name
            else:
                facade, (blocks, settings) = None, found
                own = settings.get("prompts") or {}
                default_prompt_name = default_prompt_name or settings.get("default_prompt_name")
                similarity_fn_name = similarity_fn_name or settings.get("similarity_fn_name")
        super().__init__(blocks, facade, {"query": "", "document": "", **own, **(prompts or {})}, default_prompt_name)
        self._similarity_name = "cosine" if facade is None else facade.similarity_name
        own_dim = None if facade is None else facade.truncate_dim
        self.similarity_fn_name = similarity_fn_name or self._similarity_name
        self.truncate_dim = own_dim if truncate_dim is None else truncate_dim
        length = asked_length(processor_kwargs)
        if length is not None:
            self.max_seq_length = length
        if facade is None and device is not None:
            self.to(device)
        self.model_card_data = card_data(self, model_card_data, model_name_or_path)
        for block in self:
            if hasattr(block, "on_model_ready"):
                block.on_model_ready(self)

    def _compose(self) -> BiEncoder:
        facade = composed(self)
        return super()._compose() if facade is None else facade

    @property
    def is_ours(self) -> bool:
        """Tell whether the modules make a model of ours; others are called one after the other."""
        return self._facade is not None or composed(self) is not None

    @property
    def facade(self) -> BiEncoder:
        """Return the BiEncoder over these weights."""
        facade = super().facade
        follow(facade, self)
        facade.similarity_name, facade.truncate_dim = self._similarity_name, self.truncate_dim
        return facade

    @deprecated_kwargs(sentences="inputs")
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
        pool: pools.Pool | None = None,
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
        is_single = self.is_singular_input(inputs)
        texts = [inputs] if is_single else self._listed(inputs)
        options = {name: kwargs[name] for name in kwargs if name in self.get_model_kwargs()}
        if not self.is_ours or options or any(not isinstance(text, str) for text in texts):
            given = Wanted(
                output_value,
                convert_to_numpy and not convert_to_tensor,
                convert_to_tensor,
                normalize_embeddings,
                self.truncate_dim if truncate_dim is None else truncate_dim,
                precision,
            )
            text_prompt, shows = self._prompt(prompt, prompt_name), self._progress(show_progress_bar)
            rows: Any = rows_of(features_of(self, texts, text_prompt, batch_size, shows, kwargs), given, self.device)
            return rows[0] if is_single else rows
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
            rows = self._vectors(pools.facade_of(self, pool), texts, call | sentence, precision or "float32", as_numpy)
            if isinstance(rows, Tensor):
                rows = rows.cpu() if pool is not None or isinstance(device, list) else rows
                rows = rows if convert_to_tensor else list(rows)
        return rows[0] if is_single else rows

    def _vectors(self, facade: BiEncoder, texts: list[str], call: Any, precision: str, as_numpy: bool) -> Any:
        """Return vectors in sentence-transformers' dtypes: the model's own for tensors, never bfloat16 for arrays."""
        if not texts:
            return np.array([]) if as_numpy else torch.tensor([], device=self.device)
        if precision != "float32":
            if precision in NEEDS_RANGES and facade.ranges is None:
                raise InputError(
                    f"precision={precision!r} needs the range of each component: call model.facade.calibrate(texts) "
                    "once with a few thousand typical texts (save keeps it) or quantize_embeddings(vectors, precision, "
                    "calibration_embeddings=...). The texts at hand are not used: a text would get another code in "
                    "every batch."
                )
            codes = facade.encode(texts, precision=precision, **call)
            return codes if as_numpy else torch.from_numpy(codes)
        if as_numpy:
            vectors = facade.encode(texts, **call)
            return vectors.astype(np.float16) if self.dtype == torch.float16 else vectors
        return facade.encode(texts, output="torch", **call).to(self.dtype)

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

    @deprecated_kwargs(sentences="inputs")
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
        pool: pools.Pool | None = None,
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

    @deprecated_kwargs(sentences="inputs")
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
        pool: pools.Pool | None = None,
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
        pool: pools.Pool,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        chunk_size: int | None = None,
        show_progress_bar: bool | None = None,
        precision: str = "float32",
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
    ) -> Any:
        """Call `encode` with a pool."""
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
        return self._similarity_name

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: str | SimilarityFunction | None) -> None:
        value = name.value if isinstance(name, SimilarityFunction) else name or "cosine"
        if value not in self.SUPPORTED_SIMILARITY_FN_NAMES:
            raise unknown("similarity", value, self.SUPPORTED_SIMILARITY_FN_NAMES)
        self._similarity_name = value

    @contextmanager
    def truncate_embeddings(self, truncate_dim: int | None) -> Iterator[None]:
        """Make encode keep only `truncate_dim` dimensions inside the block."""
        before, self.truncate_dim = self.truncate_dim, truncate_dim
        try:
            yield
        finally:
            self.truncate_dim = before

    truncate_sentence_embeddings = truncate_embeddings  # its name before 6.0
    load: Any = classmethod(lambda cls, input_path: cls(input_path))

    def get_embedding_dimension(self) -> int | None:
        """Return the dimension of embeddings, after truncation; None if no module says it."""
        for module in reversed(list(self)):
            known = next((name for name in DIMENSIONS if hasattr(module, name)), None)
            width = None if known is None else getattr(module, known)()
            if width is not None:
                return int(width) if self.truncate_dim is None else min(int(width), self.truncate_dim)
        return None

    def get_sentence_embedding_dimension(self) -> int | None:
        """Return the dimension of embeddings."""
        return self.get_embedding_dimension()

    def set_pooling_include_prompt(self, include_prompt: bool) -> None:
        """Set whether the tokens of a prompt are included in the pooling."""
        for module in self:
            if isinstance(module, Pooling):
                module.include_prompt = include_prompt

    def is_singular_input(self, inputs: Any) -> bool:
        """Tell whether this is one text, or one pair of texts as a tuple or dict, not several."""
        return isinstance(inputs, (str, dict))

    def _listed(self, inputs: Any) -> list[Any]:
        if isinstance(inputs, np.ndarray) and inputs.ndim == 2:
            inputs = inputs.tolist()
        if isinstance(inputs, (list, tuple)):
            has_pairs = any(isinstance(row, (list, tuple)) for row in inputs)
            if has_pairs or (not self.is_ours and any(not isinstance(row, str) for row in inputs)):
                return list(inputs)
        return as_texts(inputs)

    def _write_folder(self, path: Path) -> None:
        if self.is_ours:
            self.facade.prompts, self.facade.default_prompt_name = self.prompts, self.default_prompt_name
            self.facade.save(path)
            return
        settings = {
            "prompts": self.prompts,
            "default_prompt_name": self.default_prompt_name,
            "similarity_fn_name": self.similarity_fn_name,
        }
        write_modules(self, path, settings, "5.0.0")
