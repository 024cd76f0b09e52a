"""Run our models in `mteb` (extra), through its own protocols for encoders and cross-encoders.

import mteb
from munjang import BiEncoder
from munjang.evaluation.mteb import mteb_model
mteb.evaluate(mteb_model(BiEncoder.load("path/to/a/model")), mteb.get_tasks(tasks=["STSBenchmark"]))
"""

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from munjang.bi_encoder import BiEncoder
from munjang.cross_encoder import CrossEncoder
from munjang.engine.measure import processor
from munjang.errors import InputError, MissingExtra
from munjang.evaluation.kinds.base import kind_of
from munjang.evaluation.report import Report
from munjang.evaluation.suites import Suite
from munjang.types import Floats


def mteb_model(model: BiEncoder | CrossEncoder, name: str | None = None) -> "MtebEncoder | MtebCrossEncoder":
    """Wrap a model for `mteb.evaluate`; its results are filed under `name`, as `organization/model`."""
    return MtebEncoder(model, name=name) if kind_of(model) == "bi" else MtebCrossEncoder(model, name=name)


def measure_suite(
    model: BiEncoder | CrossEncoder, suite: Suite, name: str, folder: str | None = None
) -> Iterator[Report]:
    """Measure the tasks of a suite, one after the other; `folder` gets mteb's own files of results.

    A task whose data can't be loaded is left out with a warning; if there is none left, that is an error.
    """
    library = _imported("mteb", "A suite of mteb")
    cache = None if folder is None else _imported("mteb.cache", "A suite of mteb").ResultCache(folder)
    tasks = library.get_benchmark(suite.benchmark).tasks if suite.benchmark else library.get_tasks(tasks=suite.tasks)
    wrapped, num_done = mteb_model(model), 0
    for task in tasks:
        started = time.perf_counter()
        try:
            result = library.evaluate(wrapped, task, cache=cache, co2_tracker=False, show_progress_bar=False)
        except (OSError, ValueError, RuntimeError) as error:  # no connection, no such revision, a gated dataset
            reason = str(error).strip().split("\n")[0]
            warnings.warn(f"{task.metadata.name} is left out: {reason}", RuntimeWarning, stacklevel=2)
            continue
        (found,) = result.task_results
        num_done += 1
        main = task.metadata.main_score
        yield Report(
            model=name,
            kind=task.metadata.type,
            dataset=task.metadata.name,
            rows=0,
            metrics={main: float(found.get_score())},
            main=main,
            seconds=round(time.perf_counter() - started, 3),
            notes=(f"measured by mteb {library.__version__}",),
            machine=processor(model.device),
            date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        )
    if not num_done:
        raise InputError(f"mteb could load none of the {len(tasks)} tasks; they come from the Hub, or its cache.")


class MtebEncoder:
    """A BiEncoder that speaks mteb's EncoderProtocol."""

    def __init__(
        self,
        model_name: str | BiEncoder | CrossEncoder,
        revision: str | None = None,
        *,
        device: str | None = None,
        name: str | None = None,
    ) -> None:
        self.model = model_name if isinstance(model_name, BiEncoder) else BiEncoder.load(str(model_name), device=device)
        self.mteb_model_meta = _meta(self.model, MtebEncoder, name, revision)

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        task_metadata: Any,
        prompt_type: Any = None,
        show_progress_bar: bool | None = None,
        precision: str = "float32",
        **_context: Any,  # split, subset, and a batch size: ours are counted in tokens
    ) -> Floats:
        """Encode all texts, with the model's prompt for the task, its type, or queries and documents."""
        texts = _texts(inputs)
        options: dict[str, Any] = {"progress": show_progress_bar, "precision": precision}
        role = None if prompt_type is None else prompt_type.value
        named = _prompt_name(self.model.prompts, task_metadata.name, task_metadata.type, role)
        if named is not None:
            vectors: Floats = self.model.encode(texts, prompt_name=named, **options)
        elif role is None:
            vectors = self.model.encode(texts, **options)
        else:
            encode = self.model.encode_query if role == "query" else self.model.encode_document
            vectors = encode(texts, **options)
        return vectors

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Score each against each by the model's own similarity."""
        return torch.from_numpy(self.model.similarity(embeddings1, embeddings2))

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Tensor:
        """Score matching rows by the model's own similarity."""
        return torch.from_numpy(self.model.similarity_pairwise(embeddings1, embeddings2))


class MtebCrossEncoder:
    """A CrossEncoder that speaks mteb's CrossEncoderProtocol."""

    def __init__(
        self,
        model_name: str | BiEncoder | CrossEncoder,
        revision: str | None = None,
        device: str | None = None,
        name: str | None = None,
    ) -> None:
        is_name = not isinstance(model_name, CrossEncoder)
        self.model: Any = CrossEncoder.load(str(model_name), device=device) if is_name else model_name
        self.mteb_model_meta = _meta(self.model, MtebCrossEncoder, name, revision)

    def predict(
        self,
        inputs1: Iterable[Mapping[str, Any]],
        inputs2: Iterable[Mapping[str, Any]],
        *,
        show_progress_bar: bool | None = None,
        **_context: Any,  # the task, and what encoders are told
    ) -> Floats:
        """Score pairs."""
        pairs = list(zip(_texts(inputs1), _texts(inputs2), strict=True))
        scores: Floats = self.model.predict(pairs, progress=show_progress_bar)
        return scores


def _texts(batches: Iterable[Mapping[str, Any]]) -> list[str]:
    return [text for batch in batches for text in batch["text"]]


def _prompt_name(prompts: Mapping[str, str], task: str, kind: str, role: str | None) -> str | None:
    """Choose the prompt for a task or a type of task, in mteb's order; the model handles roles itself."""
    names = [f"{task}-{role}", task, f"{kind}-{role}", kind] if role else [task, kind]
    return next((name for name in names if name in prompts), None)


def _meta(model: Any, loader: type, name: str | None, revision: str | None) -> Any:
    meta = _imported("mteb.models.model_meta", "Running a model in mteb")
    is_bi = isinstance(model, BiEncoder)
    folder = Path(model.model.folder).name
    facts = {
        "loader": loader,
        "name": name or f"munjang/{folder}",
        # results are kept by name and revision: two models in folders of one name must not share them
        "revision": revision or model.fingerprint,
        "framework": ["PyTorch"],
        "max_tokens": model.max_length,
        "embed_dim": model.dimension if is_bi else None,
        "n_parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "similarity_fn_name": meta.ScoringFunction(model.similarity_name) if is_bi else None,
        "use_instructions": bool(model.prompts),
        "model_type": ["dense" if is_bi else "cross-encoder"],
    }
    return meta.ModelMeta.create_empty(overwrites=facts)


def _imported(module: str, purpose: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra("mteb", "mteb", purpose) from None
