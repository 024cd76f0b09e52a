"""The bases of modules: what takes a dictionary of tensors and adds some, with its settings in a config.json."""

import json
import os
import warnings
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors.torch import load_file, save_model
from torch import nn

from munjang.checkpoint import Hub, resolve

Features = dict[str, Any]
OURS, THEIRS = "munjang.compat.modules.", "sentence_transformers.models."


class Module(nn.Module):
    """A step of a model. A subclass names its settings in `config_keys`, and has `forward` and `save`."""

    config_file_name: ClassVar[str] = "config.json"
    config_keys: ClassVar[list[str]] = []
    config_key_renames: ClassVar[dict[str, str]] = {}  # of older names
    save_in_root = False
    forward_kwargs: ClassVar[set[str]] = set()
    older_names: ClassVar[dict[str, str]] = dict.fromkeys(
        ("get_sentence_embedding_dimension", "get_word_embedding_dimension"), "get_embedding_dimension"
    )

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Add to the features."""
        raise NotImplementedError

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that `save_config` writes."""
        return {key: getattr(self, key) for key in self.config_keys}

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the settings, and the weights if there are any."""
        self.save_config(output_path)
        if any(True for _ in self.parameters()):
            self.save_torch_weights(output_path, safe_serialization)

    def save_config(self, output_path: str, filename: str | None = None) -> None:
        """Write the settings."""
        path = Path(output_path) / (filename or self.config_file_name)
        path.write_text(json.dumps(self.get_config_dict(), indent=4), encoding="utf-8")

    def save_torch_weights(self, output_path: str, safe_serialization: bool = True) -> None:
        """Write the weights."""
        if safe_serialization:
            save_model(self, os.path.join(output_path, "model.safetensors"))
        else:
            torch.save(self.state_dict(), os.path.join(output_path, "pytorch_model.bin"))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:
        """Make a module from the settings in a folder, and read its weights."""
        init_defaults = kwargs.pop("init_defaults", None) or {}
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **kwargs)
        module = cls(**{**init_defaults, **config})
        if any(True for _ in module.parameters()):
            cls.load_torch_weights(model_name_or_path, subfolder, model=module, **kwargs)
        return module

    @classmethod
    def load_config(
        cls, model_name_or_path: str, subfolder: str = "", config_filename: str | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Read the settings in a folder; none if there is no file."""
        path = cls.load_file_path(model_name_or_path, config_filename or cls.config_file_name, subfolder, **kwargs)
        config: dict[str, Any] = {} if path is None else json.loads(Path(path).read_text(encoding="utf-8"))
        return {cls.config_key_renames.get(key, key): value for key, value in config.items()}

    @staticmethod
    def load_file_path(model_name_or_path: str, filename: str, subfolder: str = "", **kwargs: Any) -> str | None:
        """Return the path of a file of a folder or of a model on the Hub, or None."""
        path = _folder(model_name_or_path, kwargs) / (subfolder or "") / filename
        return str(path) if path.is_file() else None

    @staticmethod
    def load_dir_path(model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> str | None:
        """Return the path of a folder of a model."""
        path = _folder(model_name_or_path, kwargs) / (subfolder or "")
        return str(path) if path.is_dir() else None

    @classmethod
    def load_torch_weights(cls, model_name_or_path: str, subfolder: str = "", model: Any = None, **kwargs: Any) -> Any:
        """Read the weights in a folder into `model`, or return them; pickles are read as weights only."""
        path = cls.load_file_path(model_name_or_path, "model.safetensors", subfolder, **kwargs)
        if path is not None:
            weights = load_file(path)
        else:
            path = cls.load_file_path(model_name_or_path, "pytorch_model.bin", subfolder, **kwargs)
            if path is None:
                raise ValueError(
                    f"Could not find 'model.safetensors' or 'pytorch_model.bin' in {model_name_or_path}/{subfolder}."
                )
            weights = torch.load(path, map_location="cpu", weights_only=True)
        if model is None:
            return weights
        model.load_state_dict(weights)
        return model

    def on_model_ready(self, model: Any) -> None:
        """Do what has to be done once the module is part of a model: nothing."""

    def __getattr__(self, name: str) -> Any:
        newer = self.older_names.get(name)
        if newer is not None and hasattr(type(self), newer):
            warnings.warn(f"The `{name}` method has been renamed to `{newer}`.", FutureWarning, stacklevel=2)
            return getattr(self, newer)
        return super().__getattr__(name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_config_dict()})"


class InputModule(Module):
    """The first module of a model, which turns inputs into features."""

    modalities: Any = ("text",)
    save_in_root = True
    tokenizer: Any

    def preprocess(self, inputs: Any, prompt: str | None = None, **kwargs: Any) -> Features:
        """Turn inputs into features; a subclass may have `tokenize` instead, as before 6.0."""
        if type(self).tokenize is InputModule.tokenize:
            raise NotImplementedError(f"{type(self).__name__} needs a method preprocess.")
        return self.tokenize([prompt + text for text in inputs] if prompt else inputs, **kwargs)

    def tokenize(self, texts: Any, **kwargs: Any) -> Features:
        """Call `preprocess`, by its older name."""
        return self.preprocess(texts, **kwargs)

    @staticmethod
    def _prepend_prompt(inputs: list[str], prompt: str) -> list[str]:
        return [prompt + text for text in inputs]

    def save_tokenizer(self, output_path: str, **kwargs: Any) -> None:
        """Write the tokenizer's files."""
        self.tokenizer.save_pretrained(output_path, **kwargs)


def _folder(name: str, options: dict[str, Any]) -> Path:
    if os.path.isdir(name):
        return Path(name)
    hub = Hub(
        None,
        options.get("revision"),
        options.get("cache_folder"),
        options.get("token"),
        bool(options.get("local_files_only")),
    )
    return resolve(name, hub)
