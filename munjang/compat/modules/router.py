"""Router under their name: another sequence of modules for queries than for documents, as in asymmetric models."""

import ast
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from munjang.compat.environment import import_module_class
from munjang.compat.modules.module import OURS, THEIRS, Features, InputModule, Module
from munjang.compat.renames import warn_once

logger = logging.getLogger(__name__)
DIMENSIONS = ("get_embedding_dimension", "get_sentence_embedding_dimension", "get_word_embedding_dimension")
Key = tuple[Any, Any]  # task and modality, None: any


class Router(InputModule):
    """Run the modules of a route: that of the task, of the modality, or the default one."""

    forward_kwargs: ClassVar[set[str]] = {"task", "modality"}
    config_keys: ClassVar[list[str]] = ["default_route", "allow_empty_key", "route_mappings"]
    config_file_name: ClassVar[str] = "router_config.json"

    def __init__(
        self,
        sub_modules: dict[str, list[Any]],
        default_route: str | None = None,
        allow_empty_key: bool = True,
        route_mappings: dict[Key, str] | None = None,
    ) -> None:
        super().__init__()
        if not sub_modules:
            raise ValueError("The sub_modules dictionary cannot be empty.")
        if default_route is not None and default_route not in sub_modules:
            raise ValueError(f"Default route '{default_route}' not found in route keys: {list(sub_modules)}")
        for route in (route_mappings or {}).values():
            if route not in sub_modules:
                raise ValueError(
                    f"route_mappings contains mapping to '{route}' which is not in sub_modules: {list(sub_modules)}"
                )
        self.sub_modules = nn.ModuleDict({name: nn.Sequential(*route) for name, route in sub_modules.items()})
        self.default_route = next(iter(sub_modules)) if allow_empty_key and default_route is None else default_route
        self.allow_empty_key = allow_empty_key
        self.route_mappings = {
            (task, _sorted(modality)): route for (task, modality), route in (route_mappings or {}).items()
        }

    @classmethod
    def for_query_document(
        cls,
        query_modules: list[Any],
        document_modules: list[Any],
        default_route: str | None = "document",
        allow_empty_key: bool = True,
    ) -> Self:
        """Make a router with a route for queries and one for documents."""
        return cls({"query": query_modules, "document": document_modules}, default_route, allow_empty_key)

    @property
    def modalities(self) -> list[Any]:
        """Return the modalities of all routes."""
        found = {each for route in self._routes() for each in getattr(route[0], "modalities", ("text",))}
        return sorted(found, key=str)

    def _routes(self) -> list[Any]:
        return [self.sub_modules[name] for name in self.sub_modules]

    def _resolve_route(self, task: str | None = None, modality: Any = None) -> str:
        """Return the name of the route for a task and a modality."""
        modality = _sorted(modality)
        keys = ((task, modality), (task, None), (None, modality), (None, None))
        mapped = next((self.route_mappings[key] for key in keys if key in self.route_mappings), None)
        route = mapped or next((name for name in (task, modality) if name and name in self.sub_modules), None)
        known = [f"task={name!r}" for name in self.sub_modules] + [_spelled(*key) for key in self.route_mappings]
        listed = ", ".join(known[:-1]) + " and " + known[-1] if len(known) > 1 else known[0]
        if route is None and task is not None:
            raise ValueError(f"No route found for task type '{task}'. Available routes: {listed}")
        route = route or self.default_route
        if route is None and self.training:
            raise ValueError(
                "You must provide a `router_mapping` argument on the training arguments, "
                "or set a default route in the `Router` module."
            )
        if route is None:
            raise ValueError(
                f"Could not determine route for task={task!r}, modality={_joined(modality)!r}. Available routes: "
                f"{listed}. Give encode a `task`, or set a default route in the `Router`."
            )
        if route not in self.sub_modules:
            raise ValueError(f"Resolved route '{route}' not found in sub_modules: {list(self.sub_modules)}")
        return route

    def preprocess(
        self, inputs: Any, prompt: str | None = None, task: str | None = None, modality: Any = None, **kwargs: Any
    ) -> Features:
        """Turn inputs into features with the first module of their route; {"query": text} names the task itself."""
        if len(inputs) and isinstance(inputs[0], dict) and task is None:
            tasks = {key for row in inputs for key in row}
            if len(tasks) > 1:
                raise ValueError(
                    "You cannot pass a list of dictionaries with different task types. Give all of them the same key, "
                    "or texts and the `task` argument."
                )
            task = tasks.pop()
            inputs = [row[task] for row in inputs]
        if modality is None and len(inputs):
            modality = "text"
        route: Any = self.sub_modules[self._resolve_route(task, modality)]
        features: Features = route[0].preprocess(inputs, prompt=prompt, **kwargs)
        return {**features, "task": task, **({} if modality is None else {"modality": modality})}

    def forward(self, features: Features, task: str | None = None, modality: Any = None, **kwargs: Any) -> Features:
        task = features.get("task") if task is None else task
        modality = features.get("modality") if modality is None else modality
        given = {**kwargs, "task": task, "modality": modality}
        route: Any = self.sub_modules[self._resolve_route(task, modality)]
        for module in route:
            wanted = getattr(module, "forward_kwargs", None) or ()
            features = module(features, **{name: value for name, value in given.items() if name in wanted})
        return features

    def on_model_ready(self, model: Any) -> None:
        for route in self._routes():
            for module in route:
                if isinstance(module, Module):
                    module.on_model_ready(model)

    def get_embedding_dimension(self) -> int | None:
        """Return the width of what comes out of the first route."""
        found = [width for width in map(_width, self._routes()) if width is not None]
        if len(set(found)) > 1:
            warn_once(f"Different embedding dimensions detected across routes: {set(found)}. Using the first value.")
        return found[0] if found else None

    @property
    def tokenizer(self) -> Any:
        """Return the first tokenizer of a route."""
        found = (getattr(route[0], "tokenizer", None) for route in self._routes())
        return next((each for each in found if each is not None), None)

    @property
    def max_seq_length(self) -> Any:
        """Return the largest maximum number of tokens of the routes."""
        found = (getattr(route[0], "max_seq_length", None) for route in self._routes())
        lengths = {length for length in found if length}
        if len(lengths) > 1:
            warn_once(f"Different max_seq_lengths detected: {lengths}. Using the maximum value.")
        return max(lengths, default=None)

    @max_seq_length.setter
    def max_seq_length(self, tokens: Any) -> None:
        firsts = [route[0] for route in self._routes() if hasattr(route[0], "max_seq_length")]
        if not firsts:
            logger.warning("No modules have a max_seq_length attribute to set.")
        for first in firsts:
            first.max_seq_length = tokens

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write every module into a folder of its own, and the routes."""
        types: dict[str, str] = {}
        structure: dict[str, list[str]] = {}
        for name in self.sub_modules:
            structure[name] = []
            route: Any = self.sub_modules[name]
            for place, module in enumerate(route):
                kind = type(module)
                folder = f"{name}_{place}_{kind.__name__}"
                path = Path(output_path, folder)
                path.mkdir(parents=True, exist_ok=True)
                module.save(str(path))
                whole = f"{kind.__module__}.{kind.__name__}"
                types[folder] = f"{THEIRS}{kind.__name__}" if whole.startswith(OURS) else whole
                structure[name].append(folder)
        parameters = self.get_config_dict()
        parameters["route_mappings"] = {str(key): route for key, route in self.route_mappings.items()}
        whole_config = {"types": types, "structure": structure, "parameters": parameters}
        Path(output_path, self.config_file_name).write_text(json.dumps(whole_config, indent=4), encoding="utf-8")

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        module_classes: Mapping[str, type[Any]] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make the modules of every route from their folders."""
        config = cls.load_config(model_name_or_path, subfolder, **kwargs)
        config = config or cls.load_config(model_name_or_path, subfolder, "config.json", **kwargs)
        modules = {}
        for name, kind in config["types"].items():
            found = (module_classes or {}).get(kind) or import_module_class(kind, model_name_or_path)
            modules[name] = found.load(model_name_or_path, Path(subfolder, name).as_posix(), **kwargs)  # type: ignore[attr-defined]
        routes = {route: [modules[name] for name in names] for route, names in config["structure"].items()}
        parameters = dict(config.get("parameters", {}))
        mapped = parameters.pop("route_mappings", None) or {}
        parameters["route_mappings"] = {ast.literal_eval(key): route for key, route in mapped.items()}
        return cls(routes, **parameters)

    def __repr__(self) -> str:
        return nn.Module.__repr__(self)

    def extra_repr(self) -> str:
        parts = {"default_route": self.default_route, "route_mappings": self.route_mappings}
        return ", ".join(f"{name}={value!r}" for name, value in parts.items() if value)


Asym = Router  # its name before 5.0


def _sorted(modality: Any) -> Any:
    return tuple(sorted(modality)) if isinstance(modality, tuple) else modality


def _joined(modality: Any) -> Any:
    return "+".join(modality) if isinstance(modality, tuple) else modality


def _spelled(task: Any, modality: Any) -> str:
    parts = {"task": task, "modality": _joined(modality)}
    spelled = ", ".join(f"{name}={value!r}" for name, value in parts.items() if value is not None)
    return f"({spelled})" if None not in (task, modality) else spelled


def _width(route: Any) -> int | None:
    for module in reversed(list(route)):
        for name in DIMENSIONS:
            if hasattr(module, name):
                width: int = getattr(module, name)()
                return width
    return None
