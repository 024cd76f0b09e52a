"""The base of SentenceTransformer and CrossEncoder: a sequence of modules, and the model of ours over their weights."""

import logging
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Generic, Self, TypeVar

import torch
from torch import nn

from munjang.bi_encoder import BiEncoder
from munjang.compat import pools
from munjang.compat.gaps import MODULES, NotCovered, missing_attribute
from munjang.compat.loading import full_device
from munjang.compat.modules.transformer import Transformer
from munjang.compat.pools import Pool
from munjang.compat.saving import Saving
from munjang.cross_encoder import CrossEncoder
from munjang.engine.devices import DTYPES
from munjang.errors import InputError, unknown

Facade = TypeVar("Facade", BiEncoder, CrossEncoder)
logger = logging.getLogger(__name__)


class Model(Saving, nn.Sequential, Generic[Facade]):
    """A model with the methods of sentence-transformers: a torch module, trained as any other.

    `facade` is the BiEncoder or CrossEncoder over the same weights, which computes for encode and predict; it is made
    ready again after weights, device or dtype have changed. Modules that ours do not know have no facade.
    """

    backend = "torch"
    modalities = ("text",)
    trust_remote_code = False
    forward_kwargs: frozenset[str] = frozenset()

    def __init__(
        self, modules: Iterable[nn.Module], facade: Facade | None, prompts: dict[str, str], default: str | None
    ) -> None:
        super().__init__(OrderedDict((str(place), module) for place, module in enumerate(modules)))
        object.__setattr__(self, "_facade", facade)
        self._ready: Any = None if facade is None else self._state()
        self._is_stale = False  # dropout was on, and prepacked weights were dropped
        self.prompts = prompts
        self.default_prompt_name = default
        if default is not None and default not in prompts:
            raise unknown("default prompt", default, prompts or ["(this model has none)"])
        self.eval()

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name in modules:
            return modules[name]
        raise missing_attribute(type(self).__name__, name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_facade", "_ready")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        nn.Module.__setstate__(self, state)  # type: ignore[no-untyped-call]
        object.__setattr__(self, "_facade", None)
        self._ready, self._is_stale = None, False

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):  # else torch takes a module for a part of the model
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def __repr__(self) -> str:
        return nn.Module.__repr__(self)

    def __getitem__(self, place: Any) -> Any:
        """Return a module by its place."""
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__()

    @property
    def is_ours(self) -> bool:
        """Tell whether the modules make a model of ours."""
        return True

    @property
    def facade(self) -> Facade:
        """Return the BiEncoder or CrossEncoder over these weights."""
        facade: Facade | None = self._facade
        if facade is None:
            facade = self._compose()
            object.__setattr__(self, "_facade", facade)
            self._ready = self._state()
        wanted = self._wanted
        if wanted != (full_device(facade.device), facade.dtype) and facade.dtype != torch.int8:
            facade = self._moved(facade, *wanted)
        state = self._state()
        if self._is_stale or self._ready != state:
            facade.network.to_compute(facade.device, facade.dtype)
            if self._ready != state:  # other weights than those in the folder
                facade._forget()
            self._ready, self._is_stale = state, False
        return facade

    def _compose(self) -> Facade:
        """Return the model of ours that these modules make."""
        raise NotCovered(f"munjang.compat does not cover {type(self).__name__}.facade of these modules. {MODULES}")

    @property
    def _wanted(self) -> tuple[torch.device, torch.dtype]:
        parameter = next(iter(self._encoder_parameters()), None)
        if parameter is None:
            return torch.device("cpu"), torch.float32
        return full_device(parameter.device), parameter.dtype

    def _encoder_parameters(self) -> Iterable[nn.Parameter]:
        first = next(iter(self._modules.values()), None)
        return self.parameters() if first is None else first.parameters()

    def _state(self) -> tuple[int, int]:
        """Return numbers that change when weights do."""
        if any(parameter.is_inference() for parameter in self.parameters()):
            return (0, 0)
        return (hash(tuple(map(id, self.parameters()))), sum(p._version for p in self.parameters()))

    def _moved(self, facade: Facade, device: torch.device, dtype: torch.dtype) -> Facade:
        """Return a model of ours over the same weights that computes elsewhere."""
        made = type(facade)(facade.model, device, dtype)
        for name in facade.settings:
            if name not in ("max_length", "ranges"):
                setattr(made, name, getattr(facade, name))
        if isinstance(made, CrossEncoder) and isinstance(facade, CrossEncoder):
            made.activation = facade.activation
        made._options = None
        object.__setattr__(self, "_facade", made)
        self._ready = self._state()
        return made

    def train(self, mode: bool = True) -> Self:
        """Switch dropout on or off; the weights are made ready for inference again at the next call."""
        super().train(mode)
        if mode:
            self._is_stale = True
        return self

    def forward(self, input: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Run the modules, one after the other, on features from `preprocess`."""
        for module in self:
            wanted = getattr(module, "forward_kwargs", None) or ()
            input = module(input, **{name: value for name, value in kwargs.items() if name in wanted})
        return input

    @property
    def device(self) -> torch.device:
        """Return the device of the model."""
        return self._wanted[0] if self._facade is None else full_device(self._wanted[0])

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype of the network."""
        facade: Any = self._facade
        return facade.dtype if facade is not None and facade.dtype == torch.int8 else self._wanted[1]

    @property
    def max_seq_length(self) -> Any:
        """Return the maximum number of tokens, special ones included; infinite for static embeddings."""
        return getattr(self[0], "max_seq_length", None)

    @max_seq_length.setter
    def max_seq_length(self, tokens: int | None) -> None:
        self[0].max_seq_length = tokens

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
        """Return further arguments of encode or predict: those of the modules."""
        return sorted({name for module in self for name in (getattr(module, "forward_kwargs", None) or ())})

    @property
    def tokenizer(self) -> Any:
        """Return the first module's tokenizer: transformers' (extra), of the same folder."""
        return self[0].tokenizer

    @tokenizer.setter
    def tokenizer(self, value: Any) -> None:
        self[0].tokenizer = value

    @property
    def processor(self) -> Any:
        """Return `tokenizer`, by its newer name."""
        return self.tokenizer

    @property
    def transformers_model(self) -> Any:
        """Return what stands for the model of transformers: the first Transformer's `auto_model`, or None."""
        return next((module.auto_model for module in self.modules() if isinstance(module, Transformer)), None)

    @property
    def config(self) -> Any:
        """Return the configuration of the encoder, or None."""
        return None if self.transformers_model is None else self.transformers_model.config

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> dict[str, Any]:
        """Return features of texts or pairs: ids and masks, padded to the longest; encode and predict don't pad."""
        features: dict[str, Any] = self[0].preprocess(inputs, prompt=prompt, **kwargs)
        return features

    def tokenize(self, texts: Any, **kwargs: Any) -> dict[str, Any]:
        """Call `preprocess`, by its older name."""
        return self.preprocess(texts, **kwargs)

    def to(self, *targets: Any, **options: Any) -> Self:
        """Move the model to a device or dtype that we compute with."""
        asked = [*targets, *options.values()]
        for dtype in (target for target in asked if isinstance(target, torch.dtype)):
            if dtype not in DTYPES.values() or dtype == torch.int8:
                floats = [name for name, kind in DTYPES.items() if kind != torch.int8]
                raise unknown("dtype", str(dtype).removeprefix("torch."), floats)
        if self.dtype == torch.int8 and any(isinstance(target, torch.dtype) for target in asked):
            raise InputError("This model is in int8, without its floats; load it again with another dtype.")
        return super().to(*targets, **options)

    def start_multi_process_pool(self, target_devices: list[str] | None = None) -> Pool:
        """Return a `pool` for encode and predict: a copy of the model on each device, all GPUs if none is named.

        A model on a CPU alone uses all its cores by itself, so that no process is started for it.
        """
        return pools.start(self, target_devices)

    @staticmethod
    def stop_multi_process_pool(pool: Pool) -> None:
        """End a pool and its processes."""
        pools.stop(pool)

    def evaluate(self, evaluator: Any, output_path: str | None = None) -> Any:
        """Return what an evaluator says of this model."""
        if output_path is not None:
            os.makedirs(output_path, exist_ok=True)
        return evaluator(self, output_path)

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
        if hasattr(self[0], "follow_tokenizer"):
            self[0].follow_tokenizer()
        self._check_devices(device if isinstance(device, list) else [] if device is None else [device])
        if pool is not None and not pool.get("processes"):
            raise InputError("The pool was stopped; start another with model.start_multi_process_pool().")
        self._check_kwargs(method, kwargs)
        self.eval()

    def _check_kwargs(self, method: str, kwargs: dict[str, Any]) -> None:
        known = set(self.get_model_kwargs())
        if "task" not in known:  # for models that route queries and documents differently
            kwargs.pop("task", None)
        unused = kwargs.keys() - known
        if unused:
            hint = " Set model.max_seq_length instead." if "processing_kwargs" in unused else ""
            raise InputError(f"{type(self).__name__}.{method} does not take {', '.join(sorted(unused))}.{hint}")

    def _check_devices(self, devices: list[Any]) -> None:
        for device in devices:
            if full_device(device) != self.device:
                raise InputError(
                    f"The model is on {self.device}; load it with device={str(device)!r} to compute there."
                )

    def _progress(self, show_progress_bar: bool | None) -> bool:
        """Return whether to show progress; None, as in sentence-transformers: if the log level is INFO or below."""
        return logger.isEnabledFor(logging.INFO) if show_progress_bar is None else bool(show_progress_bar)
