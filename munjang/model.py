"""The base of all encoders: loading, settings, pickling, saving, description."""

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from munjang import checkpoint
from munjang.display import table
from munjang.engine.devices import DTYPES, Devices, gpu_dtype, names_of, place_model
from munjang.engine.engine import Engine
from munjang.engine.replicas import Replicas
from munjang.engine.run import Executor
from munjang.errors import CheckpointError, MunjangError, TruncationWarning, unknown
from munjang.nn.base import Network
from munjang.nn.threads import run_in_thread

PathLike = str | os.PathLike[str]
PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}  # by the role of a text


class LoadedModel:
    """A model on its devices. Any number of threads may use one at once; it pickles as its path and settings."""

    kind: ClassVar[str]  # bi, cross, multi-vector or sparse: as checkpoint calls it
    hub: ClassVar[checkpoint.Hub] = checkpoint.BI_HUB  # where names that are no folders are looked up
    settings: ClassVar[tuple[str, ...]] = ("prompts", "default_prompt_name", "max_length")  # may change after loading

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        self.model = model
        self.network: Network = model.network.to_compute(device, dtype)
        self.tokenizer = model.tokenizer
        self.device, self.dtype = device, dtype
        self.prompts: dict[str, str] = dict(model.prompts)
        self.default_prompt_name = model.default_prompt_name
        self._engine = Engine(self.network, self.tokenizer, Executor(self.network, device, threads))
        self._options: tuple[Any, ...] | None = None  # how `load` was called, for pickling
        if self.default_prompt_name is not None and self.default_prompt_name not in self.prompts:
            raise CheckpointError(
                f"{model.folder}: the default prompt {self.default_prompt_name!r} is not among {sorted(self.prompts)}."
            )

    @classmethod
    def _read(cls, folder: Path, *options: Any) -> checkpoint.Model:
        raise NotImplementedError

    @classmethod
    def _load(
        cls, path: PathLike | None, device: Devices, dtype: str | None, threads: int | None, *options: Any
    ) -> Self:
        """Load the model on the first device here, and on every other device in a process of its own."""
        path = checkpoint.default(cls.kind) if path is None else path
        folder = checkpoint.resolve(path, cls.hub)
        devices, bound_dtype = place_model(folder, device, dtype)
        is_mixed = len({place.type for place in devices}) > 1
        there = (cls, os.path.abspath(folder), bound_dtype if is_mixed else dtype, threads, *options)

        is_default = dtype is None and bound_dtype == "float16"
        with Replicas(_engine_at, devices, there) as replicas:
            wanted = None if is_default else DTYPES[bound_dtype]
            model = run_in_thread(lambda: cls._made(cls._read(folder, *options), devices[0], wanted, threads))
        model._engine.replicas = replicas
        # a folder by its full name: whoever unpickles it may stand elsewhere
        where_from = os.path.abspath(path) if os.path.isdir(path) else os.fspath(path)
        model._options = (where_from, names_of(device), dtype, threads, *options)
        return model

    @classmethod
    def _made(
        cls, model: checkpoint.Model, device: torch.device, dtype: torch.dtype | None, threads: int | None
    ) -> Self:
        """Place a model; `dtype` None: the one in which a GPU computes its network by default."""
        return cls(model, device, gpu_dtype(model.network) if dtype is None else dtype, threads)

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Any, ...], dict[str, Any]]:
        if self._options is None:
            raise MunjangError(
                "A model pickles as its path, and this one has none yet: save it and load it from there."
            )
        return type(self)._load, self._options, {name: getattr(self, name) for name in self.settings}

    def __setstate__(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            setattr(self, name, value)

    def _with_prompt(self, role: str, options: dict[str, Any]) -> dict[str, Any]:
        """Add the model's own prompt for queries or documents, unless the call has one."""
        if options.get("prompt") is None and options.get("prompt_name") is None:
            names = (name for name in PROMPT_NAMES[role] if self.prompts.get(name))
            # none of its own: no prompt at all, not the default one
            options = {**options, "prompt": next((self.prompts[name] for name in names), "")}
        return options

    def _warn_cut(self, num_cut: int, num_texts: int, max_length: int | None, advice: str = "") -> None:
        """Warn of texts that were too long, in the line that called `encode`."""
        if num_cut:
            text = f"{num_cut} of {num_texts} texts are longer than {max_length} tokens and were cut"
            warnings.warn(f"{text}{advice}.", TruncationWarning, stacklevel=5)

    @property
    def num_special(self) -> int:
        """The number of special tokens around a text, or around and between those of a pair."""
        raise NotImplementedError

    @property
    def max_length(self) -> int | None:
        """The longest text or pair in tokens, special tokens included; None: no limit."""
        return self.tokenizer.max_length

    @max_length.setter
    def max_length(self, tokens: int | None) -> None:
        checkpoint.check_length(self.model, tokens, self.num_special)
        self.tokenizer.max_length = tokens

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that changes the results: weights, modules and tokenizer."""
        return run_in_thread(self._fingerprint)

    def _fingerprint(self) -> str:
        if self.dtype != torch.float16 or self._options is None:
            return checkpoint.fingerprint(self.model)
        # hashed in bfloat16, to which weights that went through float16 are rounded otherwise: they are read again
        path, _, _, _, *options = self._options
        network = self._read(checkpoint.resolve(path, self.hub), *options).network
        return checkpoint.fingerprint(replace(self.model, network=network))

    def _forget(self) -> None:
        """Forget what was true of the weights before."""
        self.__dict__.pop("fingerprint", None)
        self.model.ranges = None  # of the vectors before
        self._engine.wider = None
        self._options = None  # what is on disk there is another model now

    def _restart(self) -> None:
        """Compute with the network as it is now."""
        executor = Executor(self.network, self.device, self._engine.executor.threads)
        self._engine = Engine(self.network, self.tokenizer, executor)
        self._forget()

    def save(self, folder: PathLike, format: str | None = None) -> None:
        """Write a folder that sentence-transformers loads too.

        `format="munjang-int8"` stores the encoder's weights in 8 bits, a quarter of the size, for Munjang alone; such a
        folder loads as any other, and computes in any dtype.

        Raises CheckpointError for a folder that holds other files.

        >>> from munjang import BiEncoder
        >>> BiEncoder.load().save("my-model")
        >>> BiEncoder.load("my-model").dimension
        384
        """
        self.model.prompts, self.model.default_prompt_name = self.prompts, self.default_prompt_name
        run_in_thread(lambda: self._write(Path(folder), format))

    def _write(self, folder: Path, format: str | None) -> None:
        raise NotImplementedError

    def info(self) -> dict[str, object]:
        """Describe the model, for people and for `munjang info`.

        >>> from munjang import BiEncoder
        >>> BiEncoder.load().info()["dimension"]
        384
        """
        return {
            "kind": f"{self.kind}-encoder",
            **checkpoint.describe(self.model),
            **self._facts(),
            "max_length": self.max_length,
            "prompts": self.prompts,
            "device": str(self._engine.replicas or self.device),
            "dtype": "bfloat16" if self._engine.wider is not None else str(self.dtype).removeprefix("torch."),
        }

    def _facts(self) -> dict[str, object]:
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = self.info()
        size = next((f"{key}={facts[key]}, " for key in ("dimension", "labels") if key in facts), "")
        name = Path(self.model.folder).name
        return f"{type(self).__name__}({name!r}, {size}max_length={self.max_length}, {self.device}, {facts['dtype']})"

    def _repr_html_(self) -> str:
        rows = [[name, value] for name, value in self.info().items() if value not in (None, {}, [])]
        return table(f"{type(self).__name__}: {Path(self.model.folder).name}", ["", ""], rows)


class TextEncoder(LoadedModel):
    """The base of encoders that read one text at a time, whose outputs are compared by a measure."""

    measures: ClassVar[tuple[str, ...]]  # the first is the default
    settings: ClassVar = (*LoadedModel.settings, "similarity_name")

    def __init__(
        self, model: checkpoint.Model, device: torch.device, dtype: torch.dtype, threads: int | None = None
    ) -> None:
        super().__init__(model, device, dtype, threads)
        self.similarity_name = model.similarity or self.measures[0]

    @property
    def similarity_name(self) -> str:
        """The name of the measure that `similarity` uses."""
        return self._similarity_name

    @similarity_name.setter
    def similarity_name(self, name: str) -> None:
        if name not in self.measures:
            raise unknown("similarity", name, self.measures)
        self._similarity_name = name

    @property
    def num_special(self) -> int:
        """The number of special tokens around a text."""
        return self.tokenizer.single.num_special


def _engine_at(device: str, model: type[LoadedModel], *options: Any) -> Engine:
    """Build the engine of another device, in its process."""
    path, *rest = options
    return model._load(path, device, *rest)._engine
