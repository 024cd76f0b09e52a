"""The base of SentenceTransformer and CrossEncoder.    B inputs, L the longest in tokens."""

import logging
import math
import os
from typing import Any, Generic, NoReturn, Self, TypeVar

import numpy as np
import torch
from tokenizers import Tokenizer as RustTokenizer

from munjang.bi_encoder import BiEncoder
from munjang.compat.gaps import MODULES, NETWORK, TOKENS, TRAINING, NotCovered, missing_attribute
from munjang.compat.loading import full_device
from munjang.cross_encoder import CrossEncoder
from munjang.engine.devices import DTYPES
from munjang.errors import InputError, MissingExtra, unknown
from munjang.text.tokenizer import Tokens
from munjang.types import Ids

Facade = TypeVar("Facade", BiEncoder, CrossEncoder)
Pool = dict[str, Any]
logger = logging.getLogger(__name__)


class Model(Generic[Facade]):
    """A model of ours with the methods of sentence-transformers; `facade` is the BiEncoder or CrossEncoder itself."""

    backend = "torch"
    modalities = ("text",)
    training = False
    trust_remote_code = False

    def __init__(self, facade: Facade, prompts: dict[str, str], default_prompt_name: str | None) -> None:
        self.facade: Facade = facade
        self.prompts = prompts
        self._tokenizer: Any = None
        self._tokenizer_size = 0
        self.default_prompt_name = default_prompt_name or facade.model.default_prompt_name
        if self.default_prompt_name is not None and self.default_prompt_name not in prompts:
            raise unknown("default prompt", self.default_prompt_name, prompts or ["(this model has none)"])

    def __getattr__(self, name: str) -> NoReturn:
        raise missing_attribute(type(self).__name__, name)

    def __getitem__(self, place: object) -> NoReturn:
        raise NotCovered(f"munjang.compat does not cover model[{place!r}]. {NETWORK}")

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotCovered(f"munjang.compat does not cover calling a model. {NETWORK}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.facade.model.folder)!r}, {self.device}, {self.dtype})"

    @property
    def device(self) -> torch.device:
        """Return the device of the model."""
        return full_device(self.facade.device)

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the network."""
        return self.facade.dtype

    @property
    def max_seq_length(self) -> Any:
        """Return the maximum number of tokens, special ones included; infinite for static embeddings."""
        self._follow_tokenizer()
        return math.inf if self.facade.max_length is None else self.facade.max_length

    @max_seq_length.setter
    def max_seq_length(self, tokens: int | None) -> None:
        self.facade.max_length = None if tokens == math.inf else tokens
        if self._tokenizer is not None:
            self._tokenizer.model_max_length = self.facade.max_length

    def get_max_seq_length(self) -> Any:
        """Return the maximum number of tokens."""
        return self.max_seq_length

    def get_backend(self) -> str:
        """Return the backend: always torch."""
        return self.backend

    def supports(self, modality: object) -> bool:
        """Tell whether inputs may be of this modality: only text."""
        return modality in self.modalities

    def get_model_kwargs(self) -> list[str]:
        """Return further arguments of encode or predict: none."""
        return []

    @property
    def tokenizer(self) -> Any:
        """Return transformers' tokenizer of the same folder (extra), for inspection.

        Setting its model_max_length sets `max_seq_length`; tokens added to it are refused at the next call.
        """
        model = self.facade.model
        if not model.config:  # static embeddings
            return RustTokenizer.from_str(model.tokenizer.rust.to_str())
        if self._tokenizer is None:
            try:
                from transformers import AutoTokenizer
            except ImportError as error:
                raise MissingExtra("transformers", "transformers", "model.tokenizer") from error
            self._tokenizer = AutoTokenizer.from_pretrained(model.folder, local_files_only=True)
            self._tokenizer.model_max_length = self.facade.max_length
            self._tokenizer_size = len(self._tokenizer)
        self._follow_tokenizer()
        return self._tokenizer

    @tokenizer.setter
    def tokenizer(self, value: object) -> NoReturn:
        raise NotCovered(f"munjang.compat does not cover setting the tokenizer. {MODULES}")

    def _follow_tokenizer(self) -> None:
        """Take over what was set on `tokenizer`, or refuse it."""
        if self._tokenizer is None:
            return
        if len(self._tokenizer) != self._tokenizer_size:
            added = len(self._tokenizer) - self._tokenizer_size
            raise NotCovered(f"munjang.compat does not cover adding tokens ({added:+} in model.tokenizer). {TOKENS}")
        if self._tokenizer.model_max_length != self.facade.max_length:
            self.facade.max_length = self._tokenizer.model_max_length

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Return token ids and masks padded to the longest, [B, L], for inspection; encode and predict don't pad."""
        self._check_kwargs("preprocess", kwargs)
        self._follow_tokenizer()
        if not self.facade.model.config:
            raise NotCovered("munjang.compat does not cover preprocess for static embeddings: encode the texts.")
        if not len(inputs):
            return {}
        tokens = self._tokens(inputs, prompt or "")
        longest = int(tokens.lengths.max())
        is_token = np.arange(longest) < tokens.lengths[:, None]
        if self.facade.model.tokenizer_config.get("padding_side") == "left":
            is_token = is_token[:, ::-1]
        features: dict[str, Any] = {"input_ids": _rectangle(tokens.ids, is_token, self._pad_id)}
        if self.facade.tokenizer.has_types:
            types = np.zeros_like(tokens.ids) if tokens.types is None else tokens.types
            features["token_type_ids"] = _rectangle(types, is_token, 0)
        features |= {"attention_mask": torch.from_numpy(is_token.astype(np.int64)), "modality": "text"}
        return {**features, "prompt_length": self.facade.tokenizer.prompt_length(prompt)} if prompt else features

    def tokenize(self, texts: Any, **kwargs: Any) -> dict[str, Any]:
        """Call `preprocess`, by its older name."""
        return self.preprocess(texts, **kwargs)

    def _tokens(self, inputs: Any, prompt: str) -> Tokens:
        raise NotImplementedError

    @property
    def _pad_id(self) -> int:
        model = self.facade.model
        token = model.tokenizer_config.get("pad_token")
        pad_id = model.tokenizer.rust.token_to_id(str(token.get("content") if isinstance(token, dict) else token))
        return int(model.config.get("pad_token_id") or 0) if pad_id is None else pad_id

    def to(self, *targets: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False) -> Self:
        """Move the model to a device or dtype, if it has another: it is loaded again from its folder."""
        asked = [target for target in (*targets, device, dtype) if target is not None and not isinstance(target, bool)]
        dtypes = [target for target in asked if isinstance(target, torch.dtype)]
        devices = [full_device(target) for target in asked if not isinstance(target, torch.dtype)]
        wanted = (devices[-1] if devices else self.device, dtypes[-1] if dtypes else self.dtype)
        if wanted == (self.device, self.dtype):
            return self
        names = {kind: name for name, kind in DTYPES.items()}
        if wanted[1] not in names:
            raise unknown("dtype", str(wanted[1]).removeprefix("torch."), DTYPES)
        load, (path, _, _, *options), settings = self.facade.__reduce__()
        moved = load(path, str(wanted[0]), names[wanted[1]], *options)
        moved.__setstate__(settings)
        if isinstance(self.facade, BiEncoder):
            moved.network.includes_prompt = self.facade.network.includes_prompt
        else:
            moved.activation = self.facade.activation
        self.facade = moved
        return self

    def cpu(self) -> Self:
        """Move the model to the CPU."""
        return self.to("cpu")

    def cuda(self, device: int | torch.device | None = None) -> Self:
        """Move the model to a GPU."""
        return self.to("cuda" if device is None else device)

    def half(self) -> Self:
        """Compute in float16."""
        return self.to(torch.float16)

    def bfloat16(self) -> Self:
        """Compute in bfloat16."""
        return self.to(torch.bfloat16)

    def float(self) -> Self:
        """Compute in float32."""
        return self.to(torch.float32)

    def eval(self) -> Self:
        """Return the model, which is always ready for inference."""
        return self

    def train(self, mode: bool = True) -> Self:
        """Return the model for mode=False; training is munjang.train's."""
        if mode:
            raise NotCovered(f"munjang.compat does not cover train(). {TRAINING}")
        return self

    def start_multi_process_pool(self, target_devices: list[str] | None = None) -> Pool:
        """Return a `pool` for encode and predict. No process is started: the model itself uses all cores, or its GPU.

        Devices other than the model's are rejected: load the model once per device, in a process of its own.
        """
        self._check_devices(target_devices or [])
        return {"input": None, "output": None, "processes": [str(self.device)]}

    @staticmethod
    def stop_multi_process_pool(pool: Pool) -> None:
        """End a pool."""
        pool["processes"] = []

    def save(
        self,
        path: str | os.PathLike[str],
        model_name: str | None = None,
        create_model_card: bool = True,
        train_datasets: list[str] | None = None,
        safe_serialization: bool = True,
    ) -> None:
        """Write a folder that sentence-transformers loads too. No model card is written; an existing one stays."""
        for name, value in (("model_name", model_name), ("train_datasets", train_datasets)):
            if value:
                raise InputError(f"{name}={value!r:.60} would go into a model card, and save() writes none.")
        if not safe_serialization:
            raise InputError("safe_serialization=False would write a pickle; weights are saved as safetensors only.")
        self._before_save()
        self.facade.save(path)

    def save_pretrained(
        self,
        path: str | os.PathLike[str],
        model_name: str | None = None,
        create_model_card: bool = True,
        train_datasets: list[str] | None = None,
        safe_serialization: bool = True,
    ) -> None:
        """Call `save`."""
        self.save(path, model_name, create_model_card, train_datasets, safe_serialization)

    def _before_save(self) -> None:
        """Copy what is kept here to where `save` looks for it."""
        raise NotImplementedError

    def _prompt(self, prompt: str | None, prompt_name: str | None) -> str:
        """Return the prompt of one call: a prompt wins over a name, and both over the default."""
        name = self.default_prompt_name if prompt_name is None else prompt_name
        if prompt is not None or name is None:
            return prompt or ""
        if name not in self.prompts:
            raise unknown("prompt", name, self.prompts or ["(this model has none)"])
        return self.prompts[name]

    def _check_call(self, method: str, batch_size: int, device: Any, pool: Pool | None, kwargs: dict[str, Any]) -> None:
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {batch_size}.")
        self._follow_tokenizer()
        self._check_devices(device if isinstance(device, list) else [] if device is None else [device])
        if pool is not None and not pool.get("processes"):
            raise InputError("The pool was stopped; start another with model.start_multi_process_pool().")
        self._check_kwargs(method, kwargs)

    def _check_kwargs(self, method: str, kwargs: dict[str, Any]) -> None:
        kwargs.pop("task", None)  # for models that route queries and documents differently, which we don't load
        if kwargs:
            hint = " Set model.max_seq_length instead." if "processing_kwargs" in kwargs else ""
            raise InputError(f"{type(self).__name__}.{method} does not take {', '.join(kwargs)}.{hint}")

    def _check_devices(self, devices: list[Any]) -> None:
        for device in devices:
            if full_device(device) != self.device:
                raise InputError(
                    f"The model is on {self.device}; load it with device={str(device)!r} to compute there."
                )

    def _progress(self, show_progress_bar: bool | None) -> bool:
        """Return whether to show progress; None, as in sentence-transformers: if the log level is INFO or below."""
        return logger.isEnabledFor(logging.INFO) if show_progress_bar is None else bool(show_progress_bar)


def _rectangle(flat: Ids, is_token: Any, fill: int) -> torch.Tensor:
    rows = np.full(is_token.shape, fill, np.int64)
    rows[is_token] = flat
    return torch.from_numpy(rows)
