"""Modules of sentence-transformers by their own paths: `from munjang.compat.util.similarity import cos_sim` works.

One file here holds what several files hold there, so a path is a line of a table. To cover another: a line in FILES.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "munjang.compat"
# A file of ours: the paths of sentence-transformers that it stands for, of any version
FILES = {
    "sentence_transformer": "SentenceTransformer sentence_transformer.model",
    "cross_encoder": "cross_encoder.CrossEncoder cross_encoder.model",
    "model": "base base.model",
    "modules": "models base.modules sentence_transformer.modules",
    "modules.module": "base.modules.module base.modules.input_module",
    "modules.transformer": "models.Transformer base.modules.transformer",
    "modules.pooling": "models.Pooling sentence_transformer.modules.pooling",
    "modules.layers": """models.Dense models.Normalize models.LayerNorm models.Dropout base.modules.dense
        base.modules.normalize sentence_transformer.modules.layer_norm sentence_transformer.modules.dropout""",
    "modules.router": "models.Asym models.Router base.modules.router",
    "modules.static": "models.StaticEmbedding sentence_transformer.modules.static_embedding",
    "card": "model_card base.model_card sentence_transformer.model_card cross_encoder.model_card",
    "similarity_functions": "util.similarity",
    "quantization": "util.quantization",
    "retrieval": "util.retrieval",
    "evaluation": """base.evaluation sentence_transformer.evaluation cross_encoder.evaluation
        cross_encoder.evaluation.deprecated""",
    "evaluation.base": "evaluation.SentenceEvaluator base.evaluation.evaluator base.evaluation.sequential",
    "losses": "sentence_transformer.losses",
    "cross_losses": "cross_encoder.losses",
    "training.samplers": "base.sampler sampler",
    "training.arguments": """training_args base.training_args sentence_transformer.training_args
        cross_encoder.training_args""",
    "training.collator": """data_collator base.data_collator sentence_transformer.data_collator
        cross_encoder.data_collator""",
    "training.trainer": "trainer base.trainer sentence_transformer.trainer",
    "training.cross": "cross_encoder.trainer",
    "training.fit": "fit_mixin sentence_transformer.fit_mixin cross_encoder.fit_mixin",
    "examples": "readers readers.InputExample datasets sentence_transformer.readers sentence_transformer.datasets",
    "environment": "util.environment util.distributed util.logging LoggingHandler",
    "file_io": "util.file_io",
    "hard_negatives": "util.hard_negatives",
    "lookups": "util.dataset",
    "renames": "util.decorators",
    "util": "util.tensor util.misc",
}
FILE_OF_PATH = {path: name for name, paths in FILES.items() for path in paths.split()}


# Packages of theirs with a file for each name, all of which are in one file of ours
SPLIT = {
    "losses": "losses",
    "sentence_transformer.losses": "losses",
    "cross_encoder.losses": "cross_losses",
    "evaluation": "evaluation",
    "sentence_transformer.evaluation": "evaluation",
    "cross_encoder.evaluation": "evaluation",
}


def file_of(path: str) -> str | None:
    """Return the file of ours that stands for a path of theirs: losses.TripletLoss, or losses.triplet as of 5.4."""
    parent, _, name = path.rpartition(".")
    if path in FILE_OF_PATH or parent not in SPLIT or (Path(__file__).parent / SPLIT[parent] / f"{name}.py").is_file():
        return FILE_OF_PATH.get(path)
    listed = import_module(f"{PACKAGE}.{SPLIT[parent]}").__all__
    return SPLIT[parent] if _plain(name) in map(_plain, listed) else None


def _plain(name: str) -> str:
    for part in ("_", "loss", "evaluator", "crossencoder"):
        name = name.lower().replace(part, "")
    return name


class Package(ModuleType):
    """A package in which a class stays where it is, whatever module of its name is imported: SentenceTransformer."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and isinstance(self.__dict__.get(name), type)):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        """Return a name that their package of this path has too, such as its trainer."""
        lazy = sys.modules[PACKAGE].__dict__.get("LAZY", {})
        if name in lazy and self.__name__ != PACKAGE:
            return getattr(import_module(f"{PACKAGE}.{lazy[name]}"), name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


class Finder(MetaPathFinder, Loader):
    """Find the file of ours that stands for a module of sentence-transformers."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        parent, _, path_there = fullname.partition(f"{PACKAGE}.")
        if parent or file_of(path_there) is None:
            return None
        return spec_from_loader(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return the module of ours, which has its own name and spec already."""
        module = import_module(f"{PACKAGE}.{file_of(spec.name.removeprefix(f'{PACKAGE}.'))}")
        self.specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back: it was executed under its own name."""
        alias = module.__spec__
        if alias is not None and self.specs.get(alias.name) is not None:
            module.__spec__ = self.specs[alias.name]

    def __init__(self) -> None:
        self.specs: dict[str, ModuleSpec | None] = {}


def install() -> None:
    """Make every path of the table importable."""
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, Finder())  # before the search in folders, which would load a file a second time
    parents = ({path.rpartition(".")[0] for path in FILE_OF_PATH} | set(SPLIT)) - {""}
    for parent in parents:
        name = FILE_OF_PATH.get(parent, parent)
        if find_spec(f"{PACKAGE}.{name}") is not None:
            # a package to Python, all of whose modules are in the table
            import_module(f"{PACKAGE}.{name}").__dict__.setdefault("__path__", [])
            sys.modules[f"{PACKAGE}.{name}"].__class__ = Package
    sys.modules[PACKAGE].__class__ = Package
