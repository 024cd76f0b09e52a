"""Every objective once more, example by example and straight from its formula.

The naive version of an objective is the function of its name in a module `naive_*.py` of this folder. It takes the
options, the network's outputs, the extras and the objective's parameters by name.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from munjang.objectives import OBJECTIVES
from tests.objectives.naive_parts import Naive, Options, mean
from tests.objectives.naive_vectors import embedding_cosine, embedding_mse

_MODULES = [import_module(f"tests.objectives.{path.stem}") for path in Path(__file__).parent.glob("naive_*.py")]


def naive(name: str) -> Naive:
    for module in _MODULES:
        if hasattr(module, name):
            found: Naive = getattr(module, name)
            return found
    raise AssertionError(f"{name} has no naive version: write {name}() in a file tests/objectives/naive_*.py")


NAIVE: dict[str, Naive] = {name: naive(name) for name in OBJECTIVES}


def wrapped(wrapper: str, given: Options, inner: Naive) -> Naive:
    """The same of a wrapper around an objective; parameters are named as inside it."""

    def matryoshka(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        total, dims = 0, given["dims"]
        for dim, weight in zip(dims, given.get("weights", [1.0] * len(dims)), strict=True):
            cut = []
            for vectors in outputs:
                kept = torch.stack(
                    [row[:dim] / (row[:dim].norm() if given.get("is_normalized", True) else 1) for row in vectors]
                )
                rest = kept.new_zeros(len(kept), vectors.shape[1] - dim)
                cut.append(torch.cat([kept, rest], dim=1) if parameters else kept)
            teacher = {
                key: extras[key][:, :, :dim]
                for key in extras
                if key == "teacher" and inner in (embedding_mse, embedding_cosine) and not parameters
            }
            total = total + weight * inner(options, cut, {**extras, **teacher}, parameters)
        return total

    def adaptive_layers(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        losses = [
            inner(options, [column[:, layer] for column in outputs], extras, parameters)
            for layer in range(outputs[0].shape[1])
        ]
        divergences = []
        for column in outputs:
            for *earlier, last in column:
                wanted = (last.detach() / 0.3).softmax(0)
                divergences += [(wanted * (wanted.log() - (each / 0.3).softmax(0).log())).sum() for each in earlier]
        far = given.get("divergence_weight", 1.0) * 0.3 * mean(divergences, outputs[0])
        return losses[-1] + given.get("earlier_weight", 1.0) * mean(losses[:-1], outputs[0]) + far

    def flops(options: Options, outputs: Sequence[Tensor], extras: Any, parameters: Any) -> Tensor:
        def cost(rows: Sequence[Tensor]) -> Tensor:
            sums = [sum(abs(row[at]) for row in rows) / len(rows) for at in range(len(rows[0]))]
            return torch.stack([each**2 for each in sums]).sum()

        queries, documents = outputs[0], [row for column in outputs[1:] for row in column]
        total = inner(options, outputs, extras, parameters) + given["query_weight"] * cost(queries)
        return total + given["document_weight"] * cost(documents) if documents else total

    return {"matryoshka": matryoshka, "adaptive_layers": adaptive_layers, "flops": flops}[wrapper]
